#include "taper/exporter/eager/promotion.h"

#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/storage_dtypes.h"
#include "taper/kernels/float8.h"

namespace taper::eager {
namespace {

enum Category { none, boolean, integer, floating, complex };
Category category_of(DType d) {
  return d == DType::boolean              ? boolean
         : is_complex(d)                  ? complex
         : is_floating(d) || is_float8(d) ? floating
                                          : integer;
}

/// The dtypes of the tensors that take part in promotion.
DTypeSet dtypes_of_tensors(const OperatorInfo& info, const Boxed* arguments) {
  DTypeSet set = 0;
  for (int i = 0; i < info.argument_count; ++i) {
    const Boxed& b = arguments[i];
    if (!(info.promoted >> i & 1) || b.kind != Kind::tensor || !b.present) continue;
    for (uint32_t k = 0; k < b.size; ++k)
      if (b.tensors[k].defined()) set |= one(b.tensors[k].dtype());
  }
  return set;
}

/// Whether the tensors have one floating or complex dtype. No number has a higher category than
/// floating, so nothing else matters then.
bool is_one_floating(DTypeSet set) {
  constexpr DTypeSet floating_dtypes =
      one(DType::f16) | one(DType::bf16) | one(DType::f32) | one(DType::f64) | one(DType::c64);
  return (set & floating_dtypes) != 0 && (set & (set - 1)) == 0;
}

void cast_all(const OperatorInfo& info, Boxed* arguments, Casts& casts, DType dtype,
              const Location& here) {
  if ((dtypes_of_tensors(info, arguments) & ~one(dtype)) == 0) return;
  recast(
      info, info.promoted, arguments, casts, [dtype](DType) { return dtype; }, here);
}

void cast_one(Boxed& b, Casts& casts, DType dtype, const Location& here) {
  casts.tensors.reserve(Schema::max_parameters);
  b.tensors = &casts.tensors.emplace_back(cast(b.tensor(), dtype, here));
}

/// Whether an index must be cast: indices are i64, and any integer dtype is allowed if there are no
/// elements.
bool is_other_index(const Tensor& t) {
  return t.dtype() == DType::i32 ||
         (t.dtype() != DType::i64 && !is_floating(t.dtype()) && proves_equal(t.numel(), Dim(0)));
}

/// Appends the positions where `mask` is true: one vector for each dimension of the mask. They
/// index dimensions `first`, … of `self`.
void append_positions(const OperatorInfo& info, const Tensor& self, size_t first,
                      const Tensor& mask, std::vector<Tensor>& list, const Location& here) {
  const std::string what =
      std::string(info.name) + ": index " + std::to_string(first) + " is a bool mask ";
  const auto fits = [&] {
    for (int k = 0; k < mask.rank(); ++k) {
      const int64_t d = static_cast<int64_t>(first) + k;
      if (d >= self.rank() || !proves_equal(mask.size(k), self.size(d))) return false;
    }
    return mask.rank() > 0;
  };
  if (!fits())
    throw EagerError(here, what + to_string(mask.sizes()) +
                               "; its sizes must be those of self's dimensions from " +
                               std::to_string(first) + " on: self is " + to_string(self.sizes()));
  const Tensor positions = call<ops::nonzero>(here, mask);
  for (int k = 0; k < mask.rank(); ++k)
    list.push_back(call<ops::clone>(here, positions.select(1, k, here)));
}

void expand_indices(const OperatorInfo& info, Boxed* arguments, Boxed& b, Casts& casts,
                    const Location& here) {
  const auto is_mask = [](const Tensor& t) {
    return t.dtype() == DType::boolean || (t.dtype() == DType::u8 && !is_other_index(t));
  };
  bool change = false;
  for (uint32_t k = 0; k < b.size; ++k) {
    const Tensor& t = b.tensors[k];
    change = change || (t.defined() && (is_mask(t) || is_other_index(t)));
  }
  if (!change) return;
  casts.lists.reserve(2);
  std::vector<Tensor>& list = casts.lists.emplace_back();
  for (uint32_t k = 0; k < b.size; ++k) {
    const Tensor& t = b.tensors[k];
    if (!t.defined())
      list.push_back(t);
    else if (is_mask(t))
      append_positions(info, arguments[0].tensor(), list.size(), t, list, here);
    else
      list.push_back(is_other_index(t) ? cast(t, DType::i64, here) : t);
  }
  b.tensors = list.data(), b.size = static_cast<uint32_t>(list.size());
}

}  // namespace

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  const Category ca = category_of(a), cb = category_of(b);
  if (ca != cb) return ca > cb ? a : b;
  if (ca == floating) {
    if ((a == DType::f16 && b == DType::bf16) || (a == DType::bf16 && b == DType::f16))
      return DType::f32;
    return a > b ? a : b;
  }
  // i8 cannot hold every u8
  if ((a == DType::u8 && b == DType::i8) || (a == DType::i8 && b == DType::u8)) return DType::i16;
  return a > b ? a : b;
}

DType result_type(const OperatorInfo& info, const Boxed* arguments, uint32_t among) {
  // in order of priority: tensors with dimensions, 0-dim tensors, Scalars
  DType types[3] = {};
  Category categories[3] = {none, none, none};
  const auto add = [&](int priority, DType d) {
    types[priority] = categories[priority] == none ? d : promote_types(types[priority], d);
    categories[priority] = category_of(types[priority]);
  };
  any_tensor(info, arguments, [&](int i, const Tensor& t) {
    if (among >> i & 1) add(t.rank() > 0 ? 0 : 1, t.dtype());
    return false;
  });
  for (int i = 0; i < info.argument_count; ++i) {
    const Boxed& b = arguments[i];
    if (!(among >> i & 1) || info.arguments[i].kind != Kind::scalar || !b.present) continue;
    add(2, b.kind == Kind::real      ? DType::f32
           : b.kind == Kind::boolean ? DType::boolean
                                     : DType::i64);
  }
  DType result = DType::f32;
  Category category = none;
  for (int priority = 0; priority < 3; ++priority) {
    if (categories[priority] <= category) continue;
    result = types[priority], category = categories[priority];
  }
  return result;
}

Tensor cast(const Tensor& tensor, DType dtype, const Location& here) {
  if (tensor.dtype() == dtype) return tensor;
  return call<ops::_to_copy>(here, tensor, dtype);
}

void recast(const OperatorInfo& info, uint32_t which, Boxed* arguments, Casts& casts,
            const std::function<DType(DType)>& target, const Location& here) {
  casts.tensors.reserve(Schema::max_parameters);  // `arguments` point into it
  for (int i = 0; i < info.argument_count; ++i) {
    Boxed& b = arguments[i];
    if (!(which >> i & 1) || b.kind != Kind::tensor || !b.present) continue;
    if (b.list) {
      std::vector<Tensor>& list = casts.lists.emplace_back(b.tensors, b.tensors + b.size);
      for (Tensor& t : list)
        if (t.defined()) t = cast(t, target(t.dtype()), here);
      b.tensors = list.data();
    } else if (const DType dtype = target(b.tensor().dtype()); b.tensor().dtype() != dtype) {
      b.tensors = &casts.tensors.emplace_back(cast(b.tensor(), dtype, here));
    }
  }
}

void promote(const OperatorInfo& info, Boxed* arguments, Casts& casts, const Location& here) {
  switch (info.promotion) {
    case Promotion::none:
      return;
    case Promotion::conditional:
      if (arguments[0].tensor().dtype() == DType::u8)
        cast_one(arguments[0], casts, DType::boolean, here);
      [[fallthrough]];
    case Promotion::common:
    case Promotion::floating:
    case Promotion::common_floating: {
      if (is_one_floating(dtypes_of_tensors(info, arguments))) return;
      require_common_dtype(info, arguments, here);
      const DType common = result_type(info, arguments, info.promoted);
      const bool fits = info.promotion == Promotion::common ||
                        info.promotion == Promotion::conditional || category_of(common) >= floating;
      return cast_all(info, arguments, casts, fits ? common : DType::f32, here);
    }
    case Promotion::integer_sum: {
      const int at = [&] {
        for (int i = 0; i < info.argument_count; ++i)
          if (info.arguments[i].kind == Kind::dtype && arguments[i].present) return i;
        return -1;
      }();
      const DType own = arguments[0].tensor().dtype();
      const DType target = at >= 0 ? static_cast<DType>(arguments[at].integer())
                           : category_of(own) >= floating ? own
                                                          : DType::i64;
      return cast_all(info, arguments, casts, target, here);
    }
    case Promotion::truth:
      if (arguments[0].tensor().dtype() == DType::u8) return;
      [[fallthrough]];
    case Promotion::boolean:
      return cast_all(info, arguments, casts, DType::boolean, here);
    case Promotion::index:
    case Promotion::indices:
      for (int i = 0; i < info.argument_count; ++i) {
        Boxed& b = arguments[i];
        if (!b.present) continue;
        if (info.arguments[i].name == "indices" && b.list)
          expand_indices(info, arguments, b, casts, here);
        else if (info.arguments[i].name == "index" && is_other_index(b.tensor()))
          cast_one(b, casts, DType::i64, here);
      }
      return;
  }
}

}  // namespace taper::eager
