#include "taper/exporter/eager/promotion.h"

#include "taper/exporter/eager/call.h"

namespace taper::eager {
namespace {

enum Category { none, boolean, integer, floating };
Category category_of(DType d) {
  return d == DType::boolean ? boolean : is_floating(d) ? floating : integer;
}

/// The dtypes of the tensors that take part.
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

/// Floating is the highest category: beside tensors of one floating dtype nothing else counts.
bool is_one_floating(DTypeSet set) {
  constexpr DTypeSet floating_dtypes =
      one(DType::f16) | one(DType::bf16) | one(DType::f32) | one(DType::f64);
  return (set & floating_dtypes) != 0 && (set & (set - 1)) == 0;
}

void cast_all(const OperatorInfo& info, Boxed* arguments, Casts& casts, DType dtype,
              const Location& here) {
  if ((dtypes_of_tensors(info, arguments) & ~one(dtype)) == 0) return;
  casts.tensors.reserve(Schema::max_parameters);  // `arguments` point into it
  casts.lists.reserve(2);
  for (int i = 0; i < info.argument_count; ++i) {
    Boxed& b = arguments[i];
    if (!(info.promoted >> i & 1) || info.arguments[i].kind != Kind::tensor || !b.present) continue;
    if (b.list) {
      std::vector<Tensor>& list = casts.lists.emplace_back(b.tensors, b.tensors + b.size);
      for (Tensor& t : list)
        if (t.defined()) t = cast(t, dtype, here);
      b.tensors = list.data();
    } else if (b.tensor().dtype() != dtype) {
      b.tensors = &casts.tensors.emplace_back(cast(b.tensor(), dtype, here));
    }
  }
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
  // u8 is not contained in i8
  if ((a == DType::u8 && b == DType::i8) || (a == DType::i8 && b == DType::u8)) return DType::i16;
  return a > b ? a : b;
}

DType result_type(const OperatorInfo& info, const Boxed* arguments) {
  // by priority: tensors with dimensions, 0-dim tensors, Scalars
  DType types[3] = {};
  Category categories[3] = {none, none, none};
  const auto add = [&](int priority, DType d) {
    types[priority] = categories[priority] == none ? d : promote_types(types[priority], d);
    categories[priority] = category_of(types[priority]);
  };
  any_tensor(info, arguments, [&](int i, const Tensor& t) {
    if (info.promoted >> i & 1) add(t.rank() > 0 ? 0 : 1, t.dtype());
    return false;
  });
  for (int i = 0; i < info.argument_count; ++i) {
    const Boxed& b = arguments[i];
    if (!(info.promoted >> i & 1) || info.arguments[i].kind != Kind::scalar || !b.present) continue;
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

void promote(const OperatorInfo& info, Boxed* arguments, Casts& casts, const Location& here) {
  switch (info.promotion) {
    case Promotion::none:
      return;
    case Promotion::common:
    case Promotion::floating:
    case Promotion::common_floating: {
      if (is_one_floating(dtypes_of_tensors(info, arguments))) return;
      const DType common = result_type(info, arguments);
      const bool fits = info.promotion == Promotion::common || is_floating(common);
      return cast_all(info, arguments, casts, fits ? common : DType::f32, here);
    }
    case Promotion::integer_sum: {
      const int at = [&] {
        for (int i = 0; i < info.argument_count; ++i)
          if (info.arguments[i].kind == Kind::dtype && arguments[i].present) return i;
        return -1;
      }();
      const DType own = arguments[0].tensor().dtype();
      const DType target = at >= 0            ? static_cast<DType>(arguments[at].integer())
                           : is_floating(own) ? own
                                              : DType::i64;
      return cast_all(info, arguments, casts, target, here);
    }
    case Promotion::boolean:
      return cast_all(info, arguments, casts, DType::boolean, here);
  }
}

}  // namespace taper::eager
