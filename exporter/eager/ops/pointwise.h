// Elementwise functions. Tensors are broadcast over each other and brought to a common dtype, as in
// PyTorch: a number never widens a tensor of its own kind (i32 + 1 is i32, f32 * 2.0 is f32),
// integers become f32 where the result is not whole. Names ending in `_` write the result into
// `self`, whose dtype must hold it.
#pragma once
#include <optional>
#include <string_view>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

// One documented line a function; the macros give the usual signatures.
#define TAPER_UNARY(name)                                                       \
  inline Tensor name(const Tensor& self, Location here = Location::current()) { \
    return call<ops::name>(here, self);                                         \
  }
#define TAPER_BINARY(name)                                    \
  inline Tensor name(const Tensor& self, const Tensor& other, \
                     Location here = Location::current()) {   \
    return call<ops::name>(here, self, other);                \
  }
#define TAPER_TENSOR_OR_NUMBER(name)                                                          \
  inline Tensor name(const Tensor& self, const Tensor& other,                                 \
                     Location here = Location::current()) {                                   \
    return call<ops::name##_Tensor>(here, self, other);                                       \
  }                                                                                           \
  inline Tensor name(const Tensor& self, Scalar other, Location here = Location::current()) { \
    return call<ops::name##_Scalar>(here, self, other);                                       \
  }

// ---- of one tensor ----

/// |x|
TAPER_UNARY(abs)
/// -x
TAPER_UNARY(neg)
/// -1, 0 or 1
TAPER_UNARY(sign)
/// The next integer above.
TAPER_UNARY(ceil)
/// The next integer below.
TAPER_UNARY(floor)
/// The nearest integer; halves to the even one.
TAPER_UNARY(round)
/// The integer part.
TAPER_UNARY(trunc)
/// e^x
TAPER_UNARY(exp)
/// e^x - 1, exact near 0
TAPER_UNARY(expm1)
TAPER_UNARY(log)
/// log(1 + x), exact near 0
TAPER_UNARY(log1p)
TAPER_UNARY(log2)
TAPER_UNARY(log10)
TAPER_UNARY(sqrt)
/// 1 / sqrt(x)
TAPER_UNARY(rsqrt)
/// 1 / x
TAPER_UNARY(reciprocal)
/// x²
TAPER_UNARY(square)
TAPER_UNARY(sin)
TAPER_UNARY(cos)
TAPER_UNARY(tan)
TAPER_UNARY(asin)
TAPER_UNARY(acos)
TAPER_UNARY(atan)
TAPER_UNARY(sinh)
TAPER_UNARY(cosh)
TAPER_UNARY(tanh)
TAPER_UNARY(asinh)
TAPER_UNARY(acosh)
TAPER_UNARY(atanh)
/// The error function, 2/√π ∫₀ˣ exp(-t²) dt.
TAPER_UNARY(erf)
/// 1 - erf(x)
TAPER_UNARY(erfc)
/// 2^x
TAPER_UNARY(exp2)
/// The y with erf(y) = x, for x in [-1, 1].
TAPER_UNARY(erfinv)
/// log |Γ(x)|
TAPER_UNARY(lgamma)
/// Γ'(x) / Γ(x)
TAPER_UNARY(digamma)
/// The n-th derivative of digamma, n >= 0.
inline Tensor polygamma(int64_t n, const Tensor& self, Location here = Location::current()) {
  return call<ops::polygamma>(here, n, self);
}
/// sin(πx) / (πx), and 1 at 0
TAPER_UNARY(sinc)
/// log(x / (1 - x)); with `eps`, of x brought into [eps, 1 - eps].
inline Tensor logit(const Tensor& self, std::optional<double> eps = {},
                    Location here = Location::current()) {
  return call<ops::logit>(here, self, eps);
}
/// x without its integer part; it keeps the sign.
TAPER_UNARY(frac)
/// `sign` by its name for complex numbers.
TAPER_UNARY(sgn)
/// `self` itself; not for bool.
TAPER_UNARY(positive)
/// `abs` by another name.
TAPER_UNARY(absolute)
/// Degrees to radians and back.
TAPER_UNARY(deg2rad)
TAPER_UNARY(rad2deg)
/// Whether each element has the sign bit set (bool): also of -0.0 and some NaN.
TAPER_UNARY(signbit)
/// Whether each element is neither NaN nor an infinity (bool).
TAPER_UNARY(isfinite)
/// Whether each element is NaN (bool).
TAPER_UNARY(isnan)
/// Whether each element is an infinity (bool).
TAPER_UNARY(isinf)
/// Whether each element is zero (bool).
TAPER_UNARY(logical_not)
/// Integers: ~x; bool: not x.
TAPER_UNARY(bitwise_not)

// ---- activations ----

/// 1 / (1 + exp(-x))
TAPER_UNARY(sigmoid)
/// max(x, 0)
TAPER_UNARY(relu)
/// min(max(x, 0), 6)
TAPER_UNARY(relu6)
/// x sigmoid(x)
TAPER_UNARY(silu)
/// x tanh(log(1 + exp(x))): D. Misra, "Mish", arXiv:1908.08681.
TAPER_UNARY(mish)
/// x brought nearer to 0 by lambd, 0 within it.
inline Tensor softshrink(const Tensor& self, Scalar lambd = 0.5,
                         Location here = Location::current()) {
  return call<ops::softshrink>(here, self, lambd);
}
/// x, but 0 within lambd of 0.
inline Tensor hardshrink(const Tensor& self, Scalar lambd = 0.5,
                         Location here = Location::current()) {
  return call<ops::hardshrink>(here, self, lambd);
}
/// x for x > 0, else weight x; `weight` is one number or one for each channel, dimension 1 of self.
inline Tensor prelu(const Tensor& self, const Tensor& weight, Location here = Location::current()) {
  return call<ops::prelu>(here, self, weight);
}
/// The first half along `dim` times the sigmoid of the second.
inline Tensor glu(const Tensor& self, int64_t dim = -1, Location here = Location::current()) {
  return call<ops::glu>(here, self, dim);
}
/// scale (x for x > 0, else alpha (exp(x) - 1)), with the constants of Klambauer et al. 2017.
TAPER_UNARY(selu)
/// x for x > 0, else alpha (exp(x / alpha) - 1).
inline Tensor celu(const Tensor& self, Scalar alpha = 1.0, Location here = Location::current()) {
  return call<ops::celu>(here, self, alpha);
}
/// NaN, infinity and minus infinity replaced; without a number by 0 and the largest finite ones.
inline Tensor nan_to_num(const Tensor& self, std::optional<double> nan = {},
                         std::optional<double> posinf = {}, std::optional<double> neginf = {},
                         Location here = Location::current()) {
  return call<ops::nan_to_num>(here, self, nan, posinf, neginf);
}
/// x min(max(x + 3, 0), 6) / 6
TAPER_UNARY(hardswish)
/// min(max(x + 3, 0), 6) / 6
TAPER_UNARY(hardsigmoid)
/// log(sigmoid(x))
TAPER_UNARY(log_sigmoid)
/// x Φ(x), Φ the normal distribution; `approximate`: "none", or "tanh" for the approximation by
/// tanh.
inline Tensor gelu(const Tensor& self, std::string_view approximate = "none",
                   Location here = Location::current()) {
  return call<ops::gelu>(here, self, approximate);
}
/// x for x > 0, else alpha (exp(x) - 1)
inline Tensor elu(const Tensor& self, Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::elu>(here, self, alpha, Scalar(1), Scalar(1));
}
/// min(max(x, min_val), max_val)
inline Tensor hardtanh(const Tensor& self, Scalar min_val = -1, Scalar max_val = 1,
                       Location here = Location::current()) {
  return call<ops::hardtanh>(here, self, min_val, max_val);
}
/// x for x > 0, else negative_slope x
inline Tensor leaky_relu(const Tensor& self, Scalar negative_slope = 0.01,
                         Location here = Location::current()) {
  return call<ops::leaky_relu>(here, self, negative_slope);
}
/// log(1 + exp(beta x)) / beta; x itself where beta x > threshold
inline Tensor softplus(const Tensor& self, Scalar beta = 1, Scalar threshold = 20,
                       Location here = Location::current()) {
  return call<ops::softplus>(here, self, beta, threshold);
}
/// Between `min` and `max`; at least one must be given.
inline Tensor clamp(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max = {},
                    Location here = Location::current()) {
  return call<ops::clamp>(here, self, min, max);
}
inline Tensor clamp(const Tensor& self, const std::optional<Tensor>& min,
                    const std::optional<Tensor>& max = {}, Location here = Location::current()) {
  return call<ops::clamp_Tensor>(here, self, min, max);
}
inline Tensor clamp_min(const Tensor& self, Scalar min, Location here = Location::current()) {
  return call<ops::clamp_min>(here, self, min);
}
inline Tensor clamp_max(const Tensor& self, Scalar max, Location here = Location::current()) {
  return call<ops::clamp_max>(here, self, max);
}
inline Tensor clamp_min(const Tensor& self, const Tensor& min,
                        Location here = Location::current()) {
  return call<ops::clamp_min_Tensor>(here, self, min);
}
inline Tensor clamp_max(const Tensor& self, const Tensor& max,
                        Location here = Location::current()) {
  return call<ops::clamp_max_Tensor>(here, self, max);
}
/// `clamp` by NumPy's name.
inline Tensor clip(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max = {},
                   Location here = Location::current()) {
  return call<ops::clip>(here, self, min, max);
}
inline Tensor clip(const Tensor& self, const std::optional<Tensor>& min,
                   const std::optional<Tensor>& max = {}, Location here = Location::current()) {
  return call<ops::clip_Tensor>(here, self, min, max);
}

// ---- arithmetic ----

/// self + alpha other
inline Tensor add(const Tensor& self, const Tensor& other, Scalar alpha = 1,
                  Location here = Location::current()) {
  return call<ops::add_Tensor>(here, self, other, alpha);
}
inline Tensor add(const Tensor& self, Scalar other, Scalar alpha = 1,
                  Location here = Location::current()) {
  return call<ops::add_Scalar>(here, self, other, alpha);
}
/// self - alpha other
inline Tensor sub(const Tensor& self, const Tensor& other, Scalar alpha = 1,
                  Location here = Location::current()) {
  return call<ops::sub_Tensor>(here, self, other, alpha);
}
inline Tensor sub(const Tensor& self, Scalar other, Scalar alpha = 1,
                  Location here = Location::current()) {
  return call<ops::sub_Scalar>(here, self, other, alpha);
}
/// other - alpha self
inline Tensor rsub(const Tensor& self, const Tensor& other, Scalar alpha = 1,
                   Location here = Location::current()) {
  return call<ops::rsub_Tensor>(here, self, other, alpha);
}
inline Tensor rsub(const Tensor& self, Scalar other, Scalar alpha = 1,
                   Location here = Location::current()) {
  return call<ops::rsub_Scalar>(here, self, other, alpha);
}
TAPER_TENSOR_OR_NUMBER(mul)
/// The true quotient: integers give f32.
TAPER_TENSOR_OR_NUMBER(div)
/// The quotient rounded to an integer: rounding_mode "floor" or "trunc". Integers stay integers.
inline Tensor div(const Tensor& self, const Tensor& other, std::string_view rounding_mode,
                  Location here = Location::current()) {
  return call<ops::div_Tensor_mode>(here, self, other, rounding_mode);
}
inline Tensor div(const Tensor& self, Scalar other, std::string_view rounding_mode,
                  Location here = Location::current()) {
  return call<ops::div_Scalar_mode>(here, self, other, rounding_mode);
}
/// The quotient rounded towards minus infinity.
inline Tensor floor_divide(const Tensor& self, const Tensor& other,
                           Location here = Location::current()) {
  return call<ops::floor_divide>(here, self, other);
}
inline Tensor floor_divide(const Tensor& self, Scalar other, Location here = Location::current()) {
  return call<ops::floor_divide_Scalar>(here, self, other);
}
/// The rest of a division rounded towards zero: it has the sign of `self`.
TAPER_TENSOR_OR_NUMBER(fmod)
/// The rest of a division rounded towards minus infinity: it has the sign of `other`, as Python's
/// %.
TAPER_TENSOR_OR_NUMBER(remainder)
/// self to the power `exponent`
inline Tensor pow(const Tensor& self, const Tensor& exponent, Location here = Location::current()) {
  return call<ops::pow_Tensor_Tensor>(here, self, exponent);
}
inline Tensor pow(const Tensor& self, Scalar exponent, Location here = Location::current()) {
  return call<ops::pow_Tensor_Scalar>(here, self, exponent);
}
inline Tensor pow(Scalar self, const Tensor& exponent, Location here = Location::current()) {
  return call<ops::pow_Scalar>(here, self, exponent);
}
/// The larger of two; NaN if either is.
TAPER_BINARY(maximum)
/// The smaller of two; NaN if either is.
TAPER_BINARY(minimum)
/// The larger (smaller) of two; a number rather than NaN.
TAPER_BINARY(fmax)
TAPER_BINARY(fmin)
/// The angle of the point (other, self), in (-π, π].
TAPER_BINARY(atan2)
/// sqrt(self² + other²), without overflow.
TAPER_BINARY(hypot)
/// |self| with the sign of other.
TAPER_TENSOR_OR_NUMBER(copysign)
/// log(exp(self) + exp(other)), without overflow; logaddexp2 to base 2.
TAPER_BINARY(logaddexp)
TAPER_BINARY(logaddexp2)
/// self log(other), and 0 where self is 0 unless other is NaN.
inline Tensor xlogy(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::xlogy_Tensor>(here, self, other);
}
inline Tensor xlogy(const Tensor& self, Scalar other, Location here = Location::current()) {
  return call<ops::xlogy_Scalar_Other>(here, self, other);
}
/// The power in f64, whatever the arguments' dtypes.
inline Tensor float_power(const Tensor& self, const Tensor& exponent,
                          Location here = Location::current()) {
  return call<ops::float_power_Tensor_Tensor>(here, self, exponent);
}
inline Tensor float_power(const Tensor& self, Scalar exponent,
                          Location here = Location::current()) {
  return call<ops::float_power_Tensor_Scalar>(here, self, exponent);
}
inline Tensor float_power(Scalar self, const Tensor& exponent,
                          Location here = Location::current()) {
  return call<ops::float_power_Scalar>(here, self, exponent);
}
/// self + value tensor1 tensor2
inline Tensor addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                      Scalar value = 1, Location here = Location::current()) {
  return call<ops::addcmul>(here, self, tensor1, tensor2, value);
}
/// self + value tensor1 / tensor2
inline Tensor addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                      Scalar value = 1, Location here = Location::current()) {
  return call<ops::addcdiv>(here, self, tensor1, tensor2, value);
}
/// self + weight (end - self)
inline Tensor lerp(const Tensor& self, const Tensor& end, Scalar weight,
                   Location here = Location::current()) {
  return call<ops::lerp_Scalar>(here, self, end, weight);
}
inline Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight,
                   Location here = Location::current()) {
  return call<ops::lerp_Tensor>(here, self, end, weight);
}

TAPER_TENSOR_OR_NUMBER(bitwise_and)
TAPER_TENSOR_OR_NUMBER(bitwise_or)
TAPER_TENSOR_OR_NUMBER(bitwise_xor)
/// Integers shifted by `other` bits; a shift right fills with the sign. A count that is negative or
/// not below the width shifts everything out.
inline Tensor bitwise_left_shift(const Tensor& self, const Tensor& other,
                                 Location here = Location::current()) {
  return call<ops::bitwise_left_shift_Tensor>(here, self, other);
}
inline Tensor bitwise_left_shift(const Tensor& self, Scalar other,
                                 Location here = Location::current()) {
  return call<ops::bitwise_left_shift_Tensor_Scalar>(here, self, other);
}
inline Tensor bitwise_right_shift(const Tensor& self, const Tensor& other,
                                  Location here = Location::current()) {
  return call<ops::bitwise_right_shift_Tensor>(here, self, other);
}
inline Tensor bitwise_right_shift(const Tensor& self, Scalar other,
                                  Location here = Location::current()) {
  return call<ops::bitwise_right_shift_Tensor_Scalar>(here, self, other);
}

// ---- comparisons, logic, selection: bool results ----

TAPER_TENSOR_OR_NUMBER(eq)
TAPER_TENSOR_OR_NUMBER(ne)
TAPER_TENSOR_OR_NUMBER(lt)
TAPER_TENSOR_OR_NUMBER(le)
TAPER_TENSOR_OR_NUMBER(gt)
TAPER_TENSOR_OR_NUMBER(ge)
/// Elements other than zero count as true.
TAPER_BINARY(logical_and)
TAPER_BINARY(logical_or)
TAPER_BINARY(logical_xor)

/// self where the bool tensor `condition` is true, else other.
inline Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other,
                    Location here = Location::current()) {
  return call<ops::where_self>(here, condition, self, other);
}
inline Tensor where(const Tensor& condition, Scalar self, Scalar other,
                    Location here = Location::current()) {
  return call<ops::where_Scalar>(here, condition, self, other);
}
inline Tensor where(const Tensor& condition, const Tensor& self, Scalar other,
                    Location here = Location::current()) {
  return call<ops::where_ScalarOther>(here, condition, self, other);
}
inline Tensor where(const Tensor& condition, Scalar self, const Tensor& other,
                    Location here = Location::current()) {
  return call<ops::where_ScalarSelf>(here, condition, self, other);
}
/// `value` where the bool tensor `mask` is true, else self.
inline Tensor masked_fill(const Tensor& self, const Tensor& mask, Scalar value,
                          Location here = Location::current()) {
  return call<ops::masked_fill_Scalar>(here, self, mask, value);
}
inline Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value,
                          Location here = Location::current()) {
  return call<ops::masked_fill_Tensor>(here, self, mask, value);
}

// ---- what derivatives call ----

/// grad_output where self > threshold, else 0
inline Tensor threshold_backward(const Tensor& grad_output, const Tensor& self, Scalar threshold,
                                 Location here = Location::current()) {
  return call<ops::threshold_backward>(here, grad_output, self, threshold);
}
/// The derivative of gelu at `self`, times grad_output.
inline Tensor gelu_backward(const Tensor& grad_output, const Tensor& self,
                            std::string_view approximate, Location here = Location::current()) {
  return call<ops::gelu_backward>(here, grad_output, self, approximate);
}
/// Of sigmoid and tanh from their results, of silu from its argument.
inline Tensor sigmoid_backward(const Tensor& grad_output, const Tensor& output,
                               Location here = Location::current()) {
  return call<ops::sigmoid_backward>(here, grad_output, output);
}
inline Tensor tanh_backward(const Tensor& grad_output, const Tensor& output,
                            Location here = Location::current()) {
  return call<ops::tanh_backward>(here, grad_output, output);
}
inline Tensor silu_backward(const Tensor& grad_output, const Tensor& self,
                            Location here = Location::current()) {
  return call<ops::silu_backward>(here, grad_output, self);
}

// ---- in place ----

inline Tensor& relu_(Tensor& self, Location here = Location::current()) {
  return call_in_place<ops::relu>(here, self);
}
inline Tensor& sigmoid_(Tensor& self, Location here = Location::current()) {
  return call_in_place<ops::sigmoid>(here, self);
}
inline Tensor& tanh_(Tensor& self, Location here = Location::current()) {
  return call_in_place<ops::tanh>(here, self);
}
inline Tensor& exp_(Tensor& self, Location here = Location::current()) {
  return call_in_place<ops::exp>(here, self);
}
inline Tensor& sqrt_(Tensor& self, Location here = Location::current()) {
  return call_in_place<ops::sqrt>(here, self);
}
inline Tensor& masked_fill_(Tensor& self, const Tensor& mask, Scalar value,
                            Location here = Location::current()) {
  return call_in_place<ops::masked_fill_Scalar>(here, self, mask, value);
}
inline Tensor& clamp_(Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max = {},
                      Location here = Location::current()) {
  return call_in_place<ops::clamp>(here, self, min, max);
}
inline Tensor& addcmul_(Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                        Scalar value = 1, Location here = Location::current()) {
  return call_in_place<ops::addcmul>(here, self, tensor1, tensor2, value);
}
inline Tensor& addcdiv_(Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                        Scalar value = 1, Location here = Location::current()) {
  return call_in_place<ops::addcdiv>(here, self, tensor1, tensor2, value);
}
inline Tensor& lerp_(Tensor& self, const Tensor& end, Scalar weight,
                     Location here = Location::current()) {
  return call_in_place<ops::lerp_Scalar>(here, self, end, weight);
}

// ---- operators ----

#define TAPER_OPERATOR(op, name)                          \
  inline Tensor operator op(Operand a, const Tensor& b) { \
    return call<ops::name##_Tensor>(a.here, a.tensor, b); \
  }                                                       \
  inline Tensor operator op(Operand a, Scalar b) {        \
    return call<ops::name##_Scalar>(a.here, a.tensor, b); \
  }
#define TAPER_SCALED_OPERATOR(op, name)                              \
  inline Tensor operator op(Operand a, const Tensor& b) {            \
    return call<ops::name##_Tensor>(a.here, a.tensor, b, Scalar(1)); \
  }                                                                  \
  inline Tensor operator op(Operand a, Scalar b) {                   \
    return call<ops::name##_Scalar>(a.here, a.tensor, b, Scalar(1)); \
  }
TAPER_SCALED_OPERATOR(+, add)
TAPER_SCALED_OPERATOR(-, sub)
TAPER_OPERATOR(*, mul)
TAPER_OPERATOR(/, div)
TAPER_OPERATOR(%, remainder)
TAPER_OPERATOR(&, bitwise_and)
TAPER_OPERATOR(|, bitwise_or)
TAPER_OPERATOR(^, bitwise_xor)
TAPER_OPERATOR(==, eq)
TAPER_OPERATOR(!=, ne)
TAPER_OPERATOR(<, lt)
TAPER_OPERATOR(<=, le)
TAPER_OPERATOR(>, gt)
TAPER_OPERATOR(>=, ge)
inline Tensor operator+(Scalar a, Operand b) {
  return call<ops::add_Scalar>(b.here, b.tensor, a, Scalar(1));
}
inline Tensor operator-(Scalar a, Operand b) {
  return call<ops::rsub_Scalar>(b.here, b.tensor, a, Scalar(1));
}
inline Tensor operator*(Scalar a, Operand b) { return call<ops::mul_Scalar>(b.here, b.tensor, a); }
inline Tensor operator/(Scalar a, Operand b) {
  return call<ops::mul_Scalar>(b.here, call<ops::reciprocal>(b.here, b.tensor), a);
}
inline Tensor operator-(Operand a) { return call<ops::neg>(a.here, a.tensor); }
inline Tensor operator~(Operand a) { return call<ops::bitwise_not>(a.here, a.tensor); }

#undef TAPER_UNARY
#undef TAPER_BINARY
#undef TAPER_TENSOR_OR_NUMBER
#undef TAPER_OPERATOR
#undef TAPER_SCALED_OPERATOR

/// Where self and other, of one dtype, are apart by no more than atol + rtol * |other|.
inline Tensor isclose(const Tensor& self, const Tensor& other, double rtol = 1e-5,
                      double atol = 1e-8, bool equal_nan = false,
                      Location here = Location::current()) {
  return call<ops::isclose>(here, self, other, rtol, atol, equal_nan);
}
inline Tensor isposinf(const Tensor& self, Location here = Location::current()) {
  return call<ops::isposinf>(here, self);
}
inline Tensor isneginf(const Tensor& self, Location here = Location::current()) {
  return call<ops::isneginf>(here, self);
}
/// 0 below 0, 1 above, and at 0 what `values`, of the same dtype, says.
inline Tensor heaviside(const Tensor& self, const Tensor& values,
                        Location here = Location::current()) {
  return call<ops::heaviside>(here, self, values);
}
/// self * 2^other
inline Tensor ldexp(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::ldexp_Tensor>(here, self, other);
}
/// -x log(x), of negative numbers -infinity.
inline Tensor entr(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_entr>(here, self);
}
/// The distribution function of the normal distribution.
inline Tensor ndtr(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_ndtr>(here, self);
}
/// Its logarithm, also where it is too small for a number.
inline Tensor log_ndtr(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_log_ndtr>(here, self);
}
/// Modified Bessel functions of the first kind, of order 0 and 1; those with an e times exp(-|x|).
inline Tensor i0(const Tensor& self, Location here = Location::current()) {
  return call<ops::i0>(here, self);
}
inline Tensor i0e(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_i0e>(here, self);
}
inline Tensor i1(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_i1>(here, self);
}
inline Tensor i1e(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_i1e>(here, self);
}
/// The greatest common divisor and the least common multiple of integers; of 0 and 0 both are 0.
inline Tensor gcd(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::gcd>(here, self, other);
}
inline Tensor lcm(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::lcm>(here, self, other);
}
/// self * log1p(other), and 0 where self is, unless other is NaN.
inline Tensor xlog1py(const Tensor& self, const Tensor& other,
                      Location here = Location::current()) {
  return call<ops::special_xlog1py>(here, self, other);
}

}  // namespace taper::eager
