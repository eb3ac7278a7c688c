// Composite pointwise operators.
#include "taper/exporter/eager/ops/pointwise.h"

#include <cmath>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

constexpr double pi = 3.14159265358979323846;

Tensor as_floating(const Tensor& t) { return is_inexact(t.dtype()) ? t : cast(t, DType::f32); }
/// A number as a 0-dim tensor of its own dtype, for operators that take only tensors. Promotion
/// treats both in the same way.
Tensor as_tensor(Scalar s) {
  return scalar_tensor(s, s.is_real ? DType::f32 : s.is_bool ? DType::boolean : DType::i64);
}
/// The same for a number that is used with `tensor`, in functions with floating results.
Tensor as_floating_beside(const Tensor& tensor, Scalar s) {
  return scalar_tensor(s, is_floating(tensor.dtype()) ? tensor.dtype() : DType::f32);
}
/// The number in the dtype that it takes when it is used with `tensor`: the dtype of the tensor,
/// unless the number is of a higher kind.
Tensor beside(const Tensor& tensor, Scalar s) {
  const DType dtype = tensor.dtype();
  const bool follows = is_floating(dtype) ? s.is_real : dtype != DType::boolean && !s.is_real;
  return follows ? scalar_tensor(s, dtype) : as_tensor(s);
}

}  // namespace

TAPER_DECOMPOSITION(square) { return {pow(a.tensor<"self">(), 2)}; }
TAPER_DECOMPOSITION(rsub_Scalar) {
  Tensor self = a.tensor<"self">();
  if (self.dtype() == DType::boolean) throw EagerError("rsub: is not defined for bool tensors");
  const Scalar alpha = a.scalar<"alpha">(), other = a.scalar<"other">();
  if (other.is_real) self = as_floating(self);  // before self is negated, because u8 has no -1
  if (alpha.is_real && !is_floating(self.dtype()))
    throw EagerError("rsub: alpha must be an integer for integer tensors");
  return {add(neg(alpha.to<double>() == 1 ? self : mul(self, alpha)), other)};
}
TAPER_DECOMPOSITION(rsub_Tensor) {
  return {sub(a.tensor<"other">(), a.tensor<"self">(), a.scalar<"alpha">())};
}
TAPER_DECOMPOSITION(floor_divide) {
  return {div(a.tensor<"self">(), a.tensor<"other">(), "floor")};
}
TAPER_DECOMPOSITION(floor_divide_Scalar) {
  return {div(a.tensor<"self">(), a.scalar<"other">(), "floor")};
}
TAPER_DECOMPOSITION(max_other) { return {maximum(a.tensor<"self">(), a.tensor<"other">())}; }
TAPER_DECOMPOSITION(min_other) { return {minimum(a.tensor<"self">(), a.tensor<"other">())}; }
TAPER_DECOMPOSITION(where_ScalarOther) {
  const Tensor self = a.tensor<"self">();
  return {where(a.tensor<"condition">(), self, beside(self, a.scalar<"other">()))};
}
TAPER_DECOMPOSITION(where_ScalarSelf) {
  const Tensor other = a.tensor<"other">();
  return {where(a.tensor<"condition">(), beside(other, a.scalar<"self">()), other)};
}
TAPER_DECOMPOSITION(where_Scalar) {
  return {where(a.tensor<"condition">(), as_tensor(a.scalar<"self">()),
                as_tensor(a.scalar<"other">()))};
}
TAPER_DECOMPOSITION(masked_fill_Tensor) {
  const Tensor self = a.tensor<"self">(), mask = a.tensor<"mask">(), value = a.tensor<"value">();
  if (value.rank() != 0)
    throw EagerError("masked_fill: value must be a number or a tensor without dimensions, not " +
                     to_string(value.sizes()));
  if (mask.dtype() != DType::boolean) throw EagerError("masked_fill: mask must be a bool tensor");
  return {where(mask, cast(value, self.dtype()), self)};
}

TAPER_DECOMPOSITION(xlogy_Scalar_Other) {
  const Tensor self = a.tensor<"self">();
  return {xlogy(self, as_floating_beside(self, a.scalar<"other">()))};
}
TAPER_DECOMPOSITION(frac) {
  const Tensor x = a.tensor<"self">();
  if (!is_floating(x.dtype()))
    throw EagerError(std::string("frac: needs a floating dtype, not ") + taper::name_of(x.dtype()));
  return {sub(x, trunc(x))};
}
// sin(z) / z. Near 0 its Taylor series, which has the right derivatives there.
TAPER_DECOMPOSITION_ROUNDED_ONCE(sinc) {
  const Tensor z = mul(a.tensor<"self">(), pi), near = lt(abs(z), 0.25);
  const Tensor far = masked_fill(z, near, 1), small = masked_fill(z, logical_not(near), 0);
  const Tensor z2 = mul(small, small);
  Tensor series = ones_like(z);
  for (int k = 12; k >= 2; k -= 2) series = rsub(mul(mul(series, z2), 1.0 / (k * (k + 1))), 1);
  return {where(near, series, div(sin(far), far))};
}
TAPER_DECOMPOSITION_ROUNDED_ONCE(logit) {
  Tensor x = as_floating(a.tensor<"self">());
  if (a.has<"eps">() && a.real<"eps">() >= 0) {
    // not clamp(): for eps > 1/2 the bounds cross, and then the lower bound wins
    const double low = a.real<"eps">();
    x = where(lt(x, Scalar(low)), Scalar(low), clamp_max(x, Scalar(1 - low)));
  }
  return {log(div(x, rsub(x, 1)))};
}
TAPER_DECOMPOSITION_ROUNDED_ONCE(deg2rad) {
  return {mul(as_floating(a.tensor<"self">()), pi / 180)};
}
TAPER_DECOMPOSITION_ROUNDED_ONCE(rad2deg) {
  return {mul(as_floating(a.tensor<"self">()), 180 / pi)};
}
TAPER_DECOMPOSITION(isfinite) {
  const Tensor x = a.tensor<"self">();
  return {logical_not(logical_or(isnan(x), isinf(x)))};
}

TAPER_DECOMPOSITION(prelu) {
  const Tensor self = a.tensor<"self">(), weight = a.tensor<"weight">();
  if (weight.rank() > 1)
    throw EagerError("prelu: weight must have at most one dimension, it is " +
                     to_string(weight.sizes()));
  Dims beside(static_cast<size_t>(self.rank()), Dim(1));
  if (weight.rank() == 1 && !proves_equal(weight.size(0), Dim(1))) {
    if (self.rank() == 0)
      throw EagerError("prelu: self without dimensions takes one weight, not " +
                       to_string(weight.sizes()));
    beside[self.rank() == 1 ? 0 : 1] = weight.size(0);
    const Dim channels = self.rank() == 1 ? Dim(1) : self.size(1);
    if (proves_different(weight.size(0), channels))
      throw EagerError("prelu: weight " + to_string(weight.sizes()) +
                       " must have an element for each channel (dimension 1) of self " +
                       to_string(self.sizes()));
  }
  return {call<ops::_prelu_kernel>(self, reshape(weight, beside))};
}
TAPER_DECOMPOSITION_ROUNDED_ONCE(glu) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() == 0) throw EagerError("glu: a tensor without dimensions has no halves");
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "glu", self);
  const Dim extent = self.size(dim);
  if (!proves_equal(extent % Dim(2), Dim(0)))
    throw EagerError("glu: dim " + std::to_string(dim) + " of " + to_string(self.sizes()) +
                     " must be even");
  const Dim half = extent / Dim(2);
  return {mul(slice(self, dim, Dim(0), half), sigmoid(slice(self, dim, half, extent)))};
}

TAPER_DECOMPOSITION(relu6) { return {hardtanh(a.tensor<"self">(), 0, 6)}; }
// S. Klambauer et al., "Self-Normalizing Neural Networks", arXiv:1706.02515
TAPER_DECOMPOSITION_ROUNDED_ONCE(selu) {
  return {call<ops::elu>(a.tensor<"self">(), Scalar(1.6732632423543772848),
                         Scalar(1.0507009873554804934), Scalar(1))};
}
TAPER_DECOMPOSITION_ROUNDED_ONCE(celu) {
  const double alpha = a.real<"alpha">();
  if (alpha == 0) throw EagerError("celu: alpha must not be 0");
  return {call<ops::elu>(a.tensor<"self">(), Scalar(alpha), Scalar(1), Scalar(1 / alpha))};
}
// log(1 / (1 + exp(-x))) = min(x, 0) - log1p(exp(-|x|))
TAPER_DECOMPOSITION_ROUNDED_ONCE(log_sigmoid) {
  const Tensor x = a.tensor<"self">();
  return {sub(minimum(x, zeros_like(x)), log1p(exp(neg(abs(x)))))};
}
TAPER_DECOMPOSITION(threshold) {
  const Tensor x = a.tensor<"self">();
  return {masked_fill(x, le(x, a.scalar<"threshold">()), a.scalar<"value">())};
}
namespace {

Tensor rounded(const Tensor& self, int64_t decimals) {
  if (!is_floating(self.dtype()) && decimals != 0)
    throw EagerError(std::string("round: decimals other than 0 need a floating dtype, not ") +
                     taper::name_of(self.dtype()));
  if (decimals == 0) return round(self);
  const Scalar power(std::pow(10.0, static_cast<double>(std::abs(decimals))));
  if (decimals > 0) return div(round(mul(self, power)), power);
  return mul(round(div(self, power)), power);
}

}  // namespace

TAPER_DECOMPOSITION_ROUNDED_ONCE(round_decimals) {
  return {rounded(a.tensor<"self">(), a.integer<"decimals">())};
}
TAPER_DECOMPOSITION_ROUNDED_ONCE(special_round) {
  return {rounded(a.tensor<"self">(), a.integer<"decimals">())};
}

// Whether both are equal, or differ by at most atol + rtol * |other|.
TAPER_DECOMPOSITION(isclose) {
  const Tensor self = a.tensor<"self">(), other = a.tensor<"other">();
  const double rtol = a.real<"rtol">(), atol = a.real<"atol">();
  if (self.dtype() != other.dtype())
    throw EagerError(std::string("isclose: self and other must have one dtype, got ") +
                     taper::name_of(self.dtype()) + " and " + taper::name_of(other.dtype()));
  if (!(rtol >= 0 && atol >= 0)) throw EagerError("isclose: rtol and atol must be at least 0");
  Tensor close = eq(self, other);
  if (is_inexact(self.dtype()) && a.boolean<"equal_nan">())
    close = logical_or(close, logical_and(isnan(self), isnan(other)));
  if (rtol == 0 && atol == 0) return {close};
  const Tensor x = as_floating(self), y = as_floating(other);
  const Tensor allowed = add(abs(mul(y, rtol)), atol), actual = abs(sub(x, y));
  return {logical_or(close, logical_and(isfinite(actual), le(actual, allowed)))};
}
TAPER_DECOMPOSITION(isreal) { return {ones_like(a.tensor<"self">(), DType::boolean)}; }

namespace {

Tensor is_infinity(const Tensor& self, double which) {
  return is_floating(self.dtype()) ? eq(self, which) : zeros_like(self, DType::boolean);
}

}  // namespace

TAPER_DECOMPOSITION(isposinf) { return {is_infinity(a.tensor<"self">(), INFINITY)}; }
TAPER_DECOMPOSITION(isneginf) { return {is_infinity(a.tensor<"self">(), -INFINITY)}; }
TAPER_DECOMPOSITION(heaviside) {
  const Tensor self = a.tensor<"self">(), values = a.tensor<"values">();
  if (self.dtype() != values.dtype())
    throw EagerError(std::string("heaviside: self and values must have one dtype, got ") +
                     taper::name_of(self.dtype()) + " and " + taper::name_of(values.dtype()));
  return {where(eq(self, 0), values, cast(gt(self, 0), self.dtype()))};
}
// self * 2^other. If other is an integer, the power is split into three factors that fit the dtype.
// For example, f32 does not hold 2^200, but it holds 1e-40 * 2^200.
TAPER_DECOMPOSITION_ROUNDED_ONCE(ldexp_Tensor) {
  const Tensor self = a.tensor<"self">(), other = a.tensor<"other">();
  if (is_floating(other.dtype())) return {mul(self, pow(Scalar(2.0), other))};
  const Tensor x = as_floating(self);
  // beyond this the result is 0 or infinity
  const double most = x.dtype() == DType::f64 ? 2200 : 300;
  const Tensor exponent = clamp(cast(other, x.dtype()), Scalar(-most), Scalar(most));
  const Tensor third = div(exponent, Scalar(3.0), "trunc");
  const Tensor power = pow(Scalar(2.0), third), rest = pow(Scalar(2.0), sub(exponent, third, 2));
  return {mul(mul(mul(x, rest), power), power)};
}
TAPER_DECOMPOSITION(lcm) {
  const Tensor self = a.tensor<"self">(), other = a.tensor<"other">();
  const Tensor divisor = gcd(self, other), zero = eq(divisor, 0);
  const Tensor share = div(self, masked_fill(divisor, zero, 1), "trunc");
  return {abs(mul(share, other))};
}
// p (p - 1) / 4 * log(π) + the sum of lgamma(self - i / 2) for i < p
TAPER_DECOMPOSITION_ROUNDED_ONCE(mvlgamma) {
  const Tensor self = as_floating(a.tensor<"self">());
  const auto p = static_cast<double>(a.integer<"p">());
  constexpr double most = 1 << 16;  // p is the number of terms
  if (p < 1 || p > most)
    throw EagerError("mvlgamma: p must lie in [1, 65536], got " + std::to_string(a.integer<"p">()));
  Tensor total;
  for (double i = 0; i < p; ++i) {
    // 0 is also added, because it turns -0, where the slope has the other sign, into 0
    const Tensor term = lgamma(add(self, i == 0 ? 0 : -i / 2));
    total = total.defined() ? add(total, term) : term;
  }
  return {add(total, p * (p - 1) / 4 * std::log(pi))};
}
// -x log(x); -infinity for negative x. Negating x instead of the product gives 0 and not -0 at 0.
TAPER_DECOMPOSITION_ROUNDED_ONCE(special_entr) {
  const Tensor x = as_floating(a.tensor<"self">());
  return {masked_fill(xlogy(neg(x), x), lt(x, 0), -INFINITY)};
}
// The normal distribution function: erfc(-x / √2) / 2.
TAPER_DECOMPOSITION_ROUNDED_ONCE(special_ndtr) {
  const Tensor x = as_floating(a.tensor<"self">());
  return {mul(erfc(mul(x, -std::sqrt(0.5))), 0.5)};
}
// self * log1p(other). 0 where self is 0, unless other is NaN.
TAPER_DECOMPOSITION_ROUNDED_ONCE(special_xlog1py) {
  const Tensor x = as_floating(a.tensor<"self">()), y = as_floating(a.tensor<"other">());
  const Tensor unusable = logical_or(le(y, -1), isinf(y));
  const Tensor vanishes = logical_and(eq(x, 0), unusable);
  return {mul(x, log1p(masked_fill(add(y, zeros_like(x)), vanishes, 0)))};
}
TAPER_DECOMPOSITION(special_xlog1py_other_scalar) {
  const Tensor self = a.tensor<"self">();
  return {call<ops::special_xlog1py>(self, as_floating_beside(self, a.scalar<"other">()))};
}
TAPER_DECOMPOSITION(special_xlog1py_self_scalar) {
  const Tensor other = a.tensor<"other">();
  return {call<ops::special_xlog1py>(as_floating_beside(other, a.scalar<"self">()), other)};
}
TAPER_DECOMPOSITION(xlogy_Scalar_Self) {
  const Tensor other = a.tensor<"other">();
  return {xlogy(as_floating_beside(other, a.scalar<"self">()), other)};
}
TAPER_DECOMPOSITION(special_xlogy_other_scalar) {
  return {xlogy(a.tensor<"self">(), a.scalar<"other">())};
}
TAPER_DECOMPOSITION(special_xlogy_self_scalar) {
  return {xlogy(a.scalar<"self">(), a.tensor<"other">())};
}
TAPER_DECOMPOSITION(bitwise_and_Scalar_Tensor) {
  const Tensor other = a.tensor<"other">();
  return {bitwise_and(beside(other, a.scalar<"self">()), other)};
}
TAPER_DECOMPOSITION(bitwise_or_Scalar_Tensor) {
  const Tensor other = a.tensor<"other">();
  return {bitwise_or(beside(other, a.scalar<"self">()), other)};
}
TAPER_DECOMPOSITION(bitwise_xor_Scalar_Tensor) {
  const Tensor other = a.tensor<"other">();
  return {bitwise_xor(beside(other, a.scalar<"self">()), other)};
}
TAPER_DECOMPOSITION(bitwise_left_shift_Scalar_Tensor) {
  const Tensor other = a.tensor<"other">();
  return {bitwise_left_shift(beside(other, a.scalar<"self">()), other)};
}
TAPER_DECOMPOSITION(bitwise_right_shift_Scalar_Tensor) {
  const Tensor other = a.tensor<"other">();
  return {bitwise_right_shift(beside(other, a.scalar<"self">()), other)};
}
TAPER_DECOMPOSITION(remainder_Scalar_Tensor) {
  const Tensor other = a.tensor<"other">();
  return {remainder(beside(other, a.scalar<"self">()), other)};
}

}  // namespace taper::eager::decompositions
