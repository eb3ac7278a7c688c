// Arithmetic of two tensors, or of a tensor and a number.
#include "taper/kernels/portable/binary_functions.h"
#include "taper/kernels/portable/division_functions.h"
#include "taper/kernels/shapes/pointwise.h"

namespace taper::portable {
namespace {

// Integers cannot be divided by zero, so all divisors are checked first.
template <class E>
bool has_zero(const Walk &walk, AnyView<const E> tensor) {
  constexpr index_t block = block_size<int64_t>;
  int64_t buffer[block];
  const Source source(*tensor.ref, walk, DType::i64);
  for (index_t at = 0, count = tensor.numel(); at < count; at += block) {
    const index_t n = count - at < block ? count - at : block;
    const int64_t *x = static_cast<const int64_t *>(read_block(source, at, n, buffer));
    for (index_t i = 0; i < n; ++i)
      if (x[i] == 0) return true;
  }
  return false;
}
template <class F, class E, class... P>
Error divide_integers(Context &context, const Pointwise<2> &plan, AnyView<const E> self,
                      AnyView<const E> other, P... parameters, View<E> out) {
  if (plan.count > 0 && has_zero(Walk::of(other.shape()), other))
    return context.fail(Error::invalid_argument, TAPER_TEXT("an integer is divided by zero"));
  return Elementwise<F, E, E, E>::run(context, plan, self, other, parameters..., out);
}

// Division of integers without a rounding mode gives a float.
struct TrueDivide {
  using parameters = Parameters<Maybe<std::string_view>>;
  explicit TrueDivide(Maybe<std::string_view>) {}
  float operator()(int64_t a, int64_t b) const {
    return static_cast<float>(a) / static_cast<float>(b);
  }
};
struct TrueDivideScalar {
  using parameters = Parameters<Scalar, Maybe<std::string_view>>;
  float b;
  TrueDivideScalar(Scalar other, Maybe<std::string_view>) : b(other.to<float>()) {}
  float operator()(int64_t a) const { return static_cast<float>(a) / b; }
};

}  // namespace

#define TAPER_ARITHMETIC(op, arguments, records, F, ...) TAPER_##arguments##_##records(op, F)
#include "taper/kernels/pointwise.def"

TAPER_POINTWISE(addcmul, i64, Elementwise<Addcmul<int64_t>, int64_t, int64_t, int64_t, int64_t>)
TAPER_POINTWISE(
    addcmul, small_integer,
    Elementwise<Addcmul<int64_t>, SmallInteger, SmallInteger, SmallInteger, SmallInteger>)

TAPER_POINTWISE(pow_Scalar, f32, AfterNumber<ScalarPow<float>, Scalar, float>)
TAPER_POINTWISE(pow_Scalar, f64, AfterNumber<ScalarPow<double>, Scalar, double>)
TAPER_POINTWISE(pow_Scalar, small_float, AfterNumber<ScalarPow<float>, Scalar, SmallFloat>)
TAPER_POINTWISE(pow_Scalar, i64, AfterNumber<ScalarPow<int64_t>, Scalar, int64_t>)
TAPER_POINTWISE(pow_Scalar, small_integer, AfterNumber<ScalarPow<int64_t>, Scalar, SmallInteger>)

// The shape rules check divisors that are numbers; the kernels here check tensors.
#define TAPER_INTEGER_DIVISION(op, F, ...)                                                 \
  TAPER_KERNEL(op, i64, Elementwise<F<int64_t>, int64_t, int64_t, int64_t>::prepare,       \
               divide_integers<F<int64_t>, int64_t __VA_ARGS__>)                           \
  TAPER_KERNEL(op, small_integer,                                                          \
               Elementwise<F<int64_t>, SmallInteger, SmallInteger, SmallInteger>::prepare, \
               divide_integers<F<int64_t>, SmallInteger __VA_ARGS__>)
#define TAPER_COMMA ,
TAPER_INTEGER_DIVISION(div_Tensor_mode, DivMode, TAPER_COMMA Maybe<std::string_view>)
TAPER_POINTWISE(div_Tensor_mode, i64_f32, Elementwise<TrueDivide, float, int64_t, int64_t>)
TAPER_POINTWISE(div_Tensor_mode, small_integer_f32,
                Elementwise<TrueDivide, float, SmallInteger, SmallInteger>)
TAPER_POINTWISE(div_Scalar_mode, i64_f32, Elementwise<TrueDivideScalar, float, int64_t>)
TAPER_POINTWISE(div_Scalar_mode, small_integer_f32,
                Elementwise<TrueDivideScalar, float, SmallInteger>)
TAPER_INTEGER_DIVISION(fmod_Tensor, Fmod)
TAPER_INTEGER_DIVISION(remainder_Tensor, Remainder)
#undef TAPER_COMMA
#undef TAPER_INTEGER_DIVISION

TAPER_POINTWISE(clamp_Tensor, f32, ClampByTensors<float>)
TAPER_POINTWISE(clamp_Tensor, f64, ClampByTensors<double>)
TAPER_POINTWISE(clamp_Tensor, small_float, ClampByTensors<SmallFloat>)
TAPER_POINTWISE(clamp_Tensor, i64, ClampByTensors<int64_t>)
TAPER_POINTWISE(clamp_Tensor, small_integer, ClampByTensors<SmallInteger>)

}  // namespace taper::portable
