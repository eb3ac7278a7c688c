// Comparisons, logic, and selection by a mask.
#include "taper/kernels/portable/binary_functions.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/portable/rows.h"
#include "taper/kernels/shapes/pointwise.h"

namespace taper::portable {
namespace {

/// A number as an element of `dtype`, read back as a T.
template <class T>
T held(Scalar number, DType dtype) {
  const Element element = element_of(number, dtype);
  T value;
  loader(dtype, dtypes_of<T>::dtype)(element.bytes, 1, 1, &value);
  return value;
}

/// An Elementwise whose last parameter is a number. As in PyTorch, the number first becomes an
/// element of self's dtype. So a half that holds 0.1 rounded equals 0.1, and masked_fill of a bool
/// tensor with 0.1 fills with true.
template <class F, class R, class Self, class... E>
struct WithHeldNumber : Elementwise<F, R, Self, E...> {
  using Base = Elementwise<F, R, Self, E...>;
  static Error run(Context& context, const typename Base::Plan& plan, AnyView<const Self> self,
                   AnyView<const E>... in, Scalar number, View<R> out) {
    return Base::run(context, plan, self, in..., held<Compute<Self>>(number, self.dtype()), out);
  }
};

struct LogicalAnd {
  bool operator()(bool a, bool b) const { return a & b; }
};
struct LogicalOr {
  bool operator()(bool a, bool b) const { return a | b; }
};
struct LogicalXor {
  bool operator()(bool a, bool b) const { return a != b; }
};

}  // namespace

#define TAPER_UNARY_COMPARISON(op, F)                                          \
  TAPER_POINTWISE(op, f32, Elementwise<F<float>, bool, float>)                 \
  TAPER_POINTWISE(op, f64, Elementwise<F<double>, bool, double>)               \
  TAPER_POINTWISE(op, small_float, WithHeldNumber<F<float>, bool, SmallFloat>) \
  TAPER_POINTWISE(op, i64, Elementwise<F<int64_t>, bool, int64_t>)             \
  TAPER_POINTWISE(op, small_integer, WithHeldNumber<F<int64_t>, bool, SmallInteger>)
#define TAPER_COMPARISON(op, arguments, records, F, ...) TAPER_##arguments##_##records(op, F)
#include "taper/kernels/pointwise.def"

TAPER_POINTWISE(logical_and, bool, Elementwise<LogicalAnd, bool, bool, bool>)
TAPER_POINTWISE(logical_or, bool, Elementwise<LogicalOr, bool, bool, bool>)
TAPER_POINTWISE(logical_xor, bool, Elementwise<LogicalXor, bool, bool, bool>)

// on bool these are the bitwise operators
TAPER_POINTWISE(bitwise_and_Tensor, bool, Elementwise<LogicalAnd, bool, bool, bool>)
TAPER_POINTWISE(bitwise_or_Tensor, bool, Elementwise<LogicalOr, bool, bool, bool>)
TAPER_POINTWISE(bitwise_xor_Tensor, bool, Elementwise<LogicalXor, bool, bool, bool>)

#define TAPER_WHERE(variant, T, op) \
  TAPER_POINTWISE(op, variant, Elementwise<Where<T>, T, bool, T, T>)
TAPER_SIZES(TAPER_WHERE, where_self)

TAPER_POINTWISE(masked_fill_Scalar, f32, Elementwise<MaskedFill<float>, float, float, bool>)
TAPER_POINTWISE(masked_fill_Scalar, f64, Elementwise<MaskedFill<double>, double, double, bool>)
TAPER_POINTWISE(masked_fill_Scalar, small_float,
                Elementwise<MaskedFill<float>, SmallFloat, SmallFloat, bool>)
TAPER_POINTWISE(masked_fill_Scalar, i64, Elementwise<MaskedFill<int64_t>, int64_t, int64_t, bool>)
TAPER_POINTWISE(masked_fill_Scalar, small_integer,
                WithHeldNumber<MaskedFill<int64_t>, SmallInteger, SmallInteger, bool>)

}  // namespace taper::portable
