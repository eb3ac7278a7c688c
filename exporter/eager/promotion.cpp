#include "taper/exporter/eager/promotion.h"

#include "taper/exporter/eager/call.h"

namespace taper::eager {
namespace {

enum Category { none, boolean, integer, floating };
Category category_of(DType d) {
  return d == DType::boolean ? boolean : is_floating(d) ? floating : integer;
}

template <class F>
void for_each_tensor(const OperatorInfo& info, const Boxed* arguments, F&& f) {
  for (int i = 0; i < info.argument_count; ++i) {
    const Boxed& b = arguments[i];
    if (!(info.promoted >> i & 1) || info.arguments[i].kind != Kind::tensor) continue;
    for (uint32_t k = 0; b.present && k < b.size; ++k)
      if (b.tensors[k].defined()) f(b.tensors[k]);
  }
}

void cast_all(const OperatorInfo& info, Boxed* arguments, Casts& casts, DType dtype,
              Location here) {
  bool needed = false;
  for_each_tensor(info, arguments, [&](const Tensor& t) { needed = needed || t.dtype() != dtype; });
  if (!needed) return;
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
  for_each_tensor(info, arguments, [&](const Tensor& t) { add(t.rank() > 0 ? 0 : 1, t.dtype()); });
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

Tensor cast(const Tensor& tensor, DType dtype, Location here) {
  if (tensor.dtype() == dtype) return tensor;
  return call<ops::_to_copy>(here, tensor, dtype);
}

void promote(const OperatorInfo& info, Boxed* arguments, Casts& casts, Location here) {
  switch (info.promotion) {
    case Promotion::none:
      return;
    case Promotion::common:
      return cast_all(info, arguments, casts, result_type(info, arguments), here);
    case Promotion::floating:
    case Promotion::common_floating: {
      const DType common = result_type(info, arguments);
      return cast_all(info, arguments, casts, is_floating(common) ? common : DType::f32, here);
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
