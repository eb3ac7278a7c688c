// Derivatives of the pointwise operators. Gradients have the broadcast shape; the engine sums them
// to the shapes of the arguments.
#include "taper/exporter/eager/ops/pointwise.h"

#include <cmath>

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/derivatives/shared.h"
#include "taper/exporter/eager/ops/creation.h"

namespace taper::eager::derivatives {

Tensor keep(const Tensor& dy, const Tensor& mask) { return masked_fill(dy, logical_not(mask), 0); }

namespace {

constexpr double pi = 3.14159265358979323846, ln2 = 0.69314718055994530942,
                 ln10 = 2.30258509299404568402;

/// dy where |x| > lambd, else 0.
Tensor shrunk(const Tensor& dy, const Tensor& x, double lambd) { return keep(dy, abs(x) > lambd); }
/// The part of dy for one of two compared values: 0 where it lost, half of dy where both are equal.
Tensor share(const Tensor& dy, const Tensor& lost, const Tensor& tied) {
  return where(tied, dy * 0.5, masked_fill(dy, lost, 0));
}
/// dy times d|self| / dself with the sign of the result; 0 where self is 0.
Tensor copied_sign(const Tensor& dy, const Tensor& self, const Tensor& result) {
  return dy * masked_fill(result / self, self == 0, 0);
}

}  // namespace

// ---- of one tensor ----

TAPER_DERIVATIVE(abs, "self") { return {dy * sign(saved.tensor<"self">())}; }
TAPER_DERIVATIVE(neg) { return {-dy}; }
TAPER_DERIVATIVE(sign) { return {zeros_like(dy)}; }
TAPER_DERIVATIVE(ceil) { return {zeros_like(dy)}; }
TAPER_DERIVATIVE(floor) { return {zeros_like(dy)}; }
TAPER_DERIVATIVE(round) { return {zeros_like(dy)}; }
TAPER_DERIVATIVE(trunc) { return {zeros_like(dy)}; }
TAPER_DERIVATIVE(exp, "result") { return {dy * saved.result()}; }
TAPER_DERIVATIVE(expm1, "result") { return {dy * (saved.result() + 1)}; }
TAPER_DERIVATIVE(log, "self") { return {dy / saved.tensor<"self">()}; }
TAPER_DERIVATIVE(log1p, "self") { return {dy / (saved.tensor<"self">() + 1)}; }
TAPER_DERIVATIVE(log2, "self") { return {dy / (saved.tensor<"self">() * ln2)}; }
TAPER_DERIVATIVE(log10, "self") { return {dy / (saved.tensor<"self">() * ln10)}; }
TAPER_DERIVATIVE(sqrt, "result") { return {dy / (saved.result() * 2)}; }
TAPER_DERIVATIVE(rsqrt, "result") { return {dy * pow(saved.result(), 3) * -0.5}; }
TAPER_DERIVATIVE(reciprocal, "result") {
  const Tensor y = saved.result();
  return {-dy * (y * y)};
}
TAPER_DERIVATIVE(sin, "self") { return {dy * cos(saved.tensor<"self">())}; }
TAPER_DERIVATIVE(cos, "self") { return {-dy * sin(saved.tensor<"self">())}; }
TAPER_DERIVATIVE(tan, "result") {
  const Tensor y = saved.result();
  return {dy * (y * y + 1)};
}
TAPER_DERIVATIVE(asin, "self") {
  const Tensor x = saved.tensor<"self">();
  return {dy * rsqrt(1 - x * x)};
}
TAPER_DERIVATIVE(acos, "self") {
  const Tensor x = saved.tensor<"self">();
  return {-dy * rsqrt(1 - x * x)};
}
TAPER_DERIVATIVE(atan, "self") {
  const Tensor x = saved.tensor<"self">();
  return {dy / (x * x + 1)};
}
TAPER_DERIVATIVE(sinh, "self") { return {dy * cosh(saved.tensor<"self">())}; }
TAPER_DERIVATIVE(cosh, "self") { return {dy * sinh(saved.tensor<"self">())}; }
TAPER_DERIVATIVE(tanh, "result") { return {tanh_backward(dy, saved.result())}; }
TAPER_DERIVATIVE(asinh, "self") {
  const Tensor x = saved.tensor<"self">();
  return {dy * rsqrt(x * x + 1)};
}
TAPER_DERIVATIVE(acosh, "self") {
  const Tensor x = saved.tensor<"self">();
  return {dy * rsqrt(x * x - 1)};
}
TAPER_DERIVATIVE(atanh, "self") {
  const Tensor x = saved.tensor<"self">();
  return {dy / (1 - x * x)};
}
TAPER_DERIVATIVE(erf, "self") {
  const Tensor x = saved.tensor<"self">();
  return {dy * exp(-(x * x)) * (2 / std::sqrt(pi))};
}
TAPER_DERIVATIVE(erfc, "self") {
  const Tensor x = saved.tensor<"self">();
  return {dy * exp(-(x * x)) * (-2 / std::sqrt(pi))};
}
TAPER_DERIVATIVE(exp2, "result") { return {dy * (saved.result() * ln2)}; }
TAPER_DERIVATIVE(erfinv, "result") {
  const Tensor y = saved.result();
  return {dy * (exp(y * y) * (std::sqrt(pi) / 2))};
}
TAPER_DERIVATIVE(lgamma, "self") { return {dy * digamma(saved.tensor<"self">())}; }
TAPER_DERIVATIVE(digamma, "self") { return {dy * polygamma(1, saved.tensor<"self">())}; }
TAPER_DERIVATIVE(polygamma, "self") {
  return {dy * polygamma(saved.integer<"n">() + 1, saved.tensor<"self">())};
}
TAPER_DERIVATIVE(i0, "self") { return {dy * i1(saved.tensor<"self">())}; }
TAPER_DERIVATIVE(special_i0e, "self", "result") {
  const Tensor x = saved.tensor<"self">();
  return {dy * (i1e(x) - sign(x) * saved.result())};
}
namespace {

/// y / x for an odd function y with slope 1/2 at 0. Near 0, where y has lost its digits, the limit
/// 1/2.
Tensor over_argument(const Tensor& y, const Tensor& x) {
  const Tensor zero = abs(x) < 1e-30;
  return masked_fill(y / masked_fill(x, zero, 1), zero, 0.5);
}

}  // namespace
TAPER_DERIVATIVE(special_i1, "self", "result") {
  const Tensor x = saved.tensor<"self">();
  return {dy * (i0(x) - over_argument(saved.result(), x))};
}
TAPER_DERIVATIVE(special_i1e, "self", "result") {
  const Tensor x = saved.tensor<"self">(), y = saved.result();
  return {dy * (i0e(x) - sign(x) * y - over_argument(y, x))};
}
// the density divided by the distribution function
TAPER_DERIVATIVE(special_log_ndtr, "self", "result") {
  const Tensor x = saved.tensor<"self">();
  return {dy * exp(x * x * -0.5 - saved.result()) * (1 / std::sqrt(2 * pi))};
}
TAPER_DERIVATIVE(special_entr, "self") { return {-dy * (log(saved.tensor<"self">()) + 1)}; }
// 1 / (x (1 - x)). As in PyTorch, 0 where eps limits x, and NaN where x has no logit. At -0 it is
// infinity, as at 0.
TAPER_DERIVATIVE(logit, "self") {
  const Tensor x = saved.tensor<"self">(), dx = dy / abs(x * (1 - x));
  const bool bounded = saved.has<"eps">() && saved.real<"eps">() >= 0;
  const double eps = bounded ? saved.real<"eps">() : 0;
  return {masked_fill(dx, logical_or(lt(x, eps), gt(x, 1 - eps)), bounded ? 0 : NAN)};
}
TAPER_DERIVATIVE(nan_to_num, "self") {
  const Tensor x = saved.tensor<"self">();
  return {masked_fill(dy, logical_or(isnan(x), isinf(x)), 0)};
}

// ---- activations ----

TAPER_DERIVATIVE(sigmoid, "result") { return {sigmoid_backward(dy, saved.result())}; }
TAPER_DERIVATIVE(relu, "result") { return {threshold_backward(dy, saved.result(), 0)}; }
TAPER_DERIVATIVE(silu, "self") { return {silu_backward(dy, saved.tensor<"self">())}; }
TAPER_DERIVATIVE(gelu, "self") {
  return {gelu_backward(dy, saved.tensor<"self">(), saved.text<"approximate">())};
}
// t + x σ(x) (1 - t²), t = tanh(log(1 + exp(x)))
TAPER_DERIVATIVE(mish, "self") {
  const DType dtype = saved.dtype_of<"self">(), wide = dtype == DType::f64 ? dtype : DType::f32;
  const Tensor x = saved.tensor<"self">().to(wide), t = tanh(softplus(x));
  return {(dy.to(wide) * (t + x * sigmoid(x) * (1 - t * t))).to(dtype)};
}
TAPER_DERIVATIVE(softshrink, "self") {
  return {shrunk(dy, saved.tensor<"self">(), saved.real<"lambd">())};
}
TAPER_DERIVATIVE(hardshrink, "self") {
  return {shrunk(dy, saved.tensor<"self">(), saved.real<"lambd">())};
}
TAPER_DERIVATIVE(_prelu_kernel, "self", "weight") {
  const Tensor x = saved.tensor<"self">();
  return {where(x > 0, dy, dy * saved.tensor<"weight">()),
          saved.needs<"weight">() ? masked_fill(dy * x, x > 0, 0) : Tensor()};
}
TAPER_DERIVATIVE(elu, "self") {
  const Tensor x = saved.tensor<"self">();
  const double alpha = saved.real<"alpha">(), scale = saved.real<"scale">(),
               input_scale = saved.real<"input_scale">();
  // the exponential must stay finite where it is not chosen: its own derivative is multiplied by 0
  // there
  return {where(x <= 0, dy * exp(clamp_max(x, 0) * input_scale) * (alpha * scale * input_scale),
                dy * scale)};
}
TAPER_DERIVATIVE(hardtanh, "self") {
  const Tensor x = saved.tensor<"self">();
  return {keep(keep(dy, x > saved.scalar<"min_val">()), x < saved.scalar<"max_val">())};
}
TAPER_DERIVATIVE(leaky_relu, "self") {
  return {where(saved.tensor<"self">() > 0, dy, dy * saved.scalar<"negative_slope">())};
}
TAPER_DERIVATIVE(hardswish, "self") {
  const Tensor x = saved.tensor<"self">();
  return {where(x < 3, keep(dy * (x / 3 + 0.5), x > -3), dy)};
}
TAPER_DERIVATIVE(hardsigmoid, "self") { return {keep(dy / 6, abs(saved.tensor<"self">()) < 3)}; }
TAPER_DERIVATIVE(softplus, "self") {
  const Tensor z = saved.tensor<"self">() * saved.scalar<"beta">();
  return {where(z > saved.scalar<"threshold">(), dy, dy * sigmoid(z))};
}
TAPER_DERIVATIVE(clamp, "self") {
  const Tensor x = saved.tensor<"self">();
  Tensor dx = dy;
  if (saved.has<"min">()) dx = keep(dx, x > saved.scalar<"min">());
  if (saved.has<"max">()) dx = keep(dx, x < saved.scalar<"max">());
  return {dx};
}
TAPER_DERIVATIVE(clamp_min, "self") {
  return {keep(dy, saved.tensor<"self">() > saved.scalar<"min">())};
}
TAPER_DERIVATIVE(clamp_max, "self") {
  return {keep(dy, saved.tensor<"self">() < saved.scalar<"max">())};
}
// The gradient goes to the argument that the result equals. If self equals one bound, each gets
// half. If both bounds are equal, all goes to self if it equals them, else to the bound that self
// exceeds. If the upper bound is below the lower one, all goes to the upper one. If self is NaN,
// all goes to self.
TAPER_DERIVATIVE(clamp_Tensor, "self", "min", "max") {
  const Tensor x = saved.tensor<"self">(), low = saved.tensor<"min">(),
               high = saved.tensor<"max">();
  if (!high.defined())
    return {share(dy, x < low, x == low), share(dy, x > low, x == low), Tensor()};
  if (!low.defined())
    return {share(dy, x > high, x == high), Tensor(), share(dy, x < high, x == high)};
  const Tensor ordered = low <= high, apart = low < high;
  const Tensor at_low = logical_and(x == low, apart), at_high = logical_and(x == high, apart);
  const auto half_or_whole = [&](const Tensor& half, const Tensor& whole) {
    return where(half, dy * 0.5, keep(dy, whole));
  };
  return {share(dy, logical_or(x<low, x> high), logical_or(at_low, at_high)),
          half_or_whole(at_low, logical_and(x < low, ordered)),
          half_or_whole(at_high, logical_or(low > high, logical_and(x > high, ordered)))};
}

// ---- derivatives of derivatives ----

TAPER_DERIVATIVE(threshold_backward, "self") {
  return {threshold_backward(dy, saved.tensor<"self">(), saved.scalar<"threshold">()), Tensor()};
}
TAPER_DERIVATIVE(sigmoid_backward, "grad_output", "output") {
  const Tensor y = saved.tensor<"output">();
  return {sigmoid_backward(dy, y), dy * saved.tensor<"grad_output">() * (1 - 2 * y)};
}
TAPER_DERIVATIVE(tanh_backward, "grad_output", "output") {
  const Tensor y = saved.tensor<"output">();
  return {tanh_backward(dy, y), dy * saved.tensor<"grad_output">() * (-2 * y)};
}
// The derivative of (g s)(1 + x(1 - s)), with the factors in PyTorch's order; an infinite g shows
// the difference.
TAPER_DERIVATIVE(silu_backward, "grad_output", "self") {
  const Tensor x = saved.tensor<"self">(), g = saved.tensor<"grad_output">(), s = sigmoid(x),
               scaled = dy * (g * s);
  const Tensor of_sigmoid = dy * (1 + x * (1 - s)) * g - scaled * x;
  return {silu_backward(dy, x), scaled * (1 - s) + sigmoid_backward(of_sigmoid, s)};
}
// φ(x)(2 - x²); with u = k(x + c x³), t = tanh(u): (1 - t²)(u' + x u''/2 - x t u'²)
TAPER_DERIVATIVE(gelu_backward, "grad_output", "self") {
  const Tensor x = saved.tensor<"self">(), g = saved.tensor<"grad_output">();
  const Tensor x2 = x * x;
  Tensor second;
  if (saved.text<"approximate">() == "tanh") {
    const double k = std::sqrt(2 / pi), c = 0.044715;
    const Tensor t = tanh((x + x * x2 * c) * k), du = (1 + x2 * (3 * c)) * k;
    second = (1 - t * t) * (du + x2 * (3 * c * k) - x * t * (du * du));
  } else {
    second = exp(x2 * -0.5) * (2 - x2) * (1 / std::sqrt(2 * pi));
  }
  return {gelu_backward(dy, x, saved.text<"approximate">()), dy * g * second};
}

// ---- arithmetic ----

TAPER_DERIVATIVE(add_Tensor) {
  return {dy, saved.needs<"other">() ? scaled(dy, saved.scalar<"alpha">()) : Tensor()};
}
TAPER_DERIVATIVE(add_Scalar) { return {dy}; }
TAPER_DERIVATIVE(sub_Tensor) {
  return {dy, saved.needs<"other">() ? scaled(-dy, saved.scalar<"alpha">()) : Tensor()};
}
TAPER_DERIVATIVE(sub_Scalar) { return {dy}; }
TAPER_DERIVATIVE(mul_Tensor, "self", "other") {
  return {saved.needs<"self">() ? dy * saved.tensor<"other">() : Tensor(),
          saved.needs<"other">() ? dy * saved.tensor<"self">() : Tensor()};
}
TAPER_DERIVATIVE(mul_Scalar) { return {dy * saved.scalar<"other">()}; }
TAPER_DERIVATIVE(div_Tensor, "self", "other") {
  const Tensor b = saved.tensor<"other">();
  return {dy / b, saved.needs<"other">() ? -dy * (saved.tensor<"self">() / b / b) : Tensor()};
}
TAPER_DERIVATIVE(div_Scalar) { return {dy / saved.scalar<"other">()}; }
TAPER_DERIVATIVE(div_Tensor_mode, "self", "other") {
  if (saved.has<"rounding_mode">()) return {zeros_like(dy), zeros_like(dy)};
  const Tensor b = saved.tensor<"other">();
  return {dy / b, -dy * (saved.tensor<"self">() / b / b)};
}
TAPER_DERIVATIVE(div_Scalar_mode) {
  return {saved.has<"rounding_mode">() ? zeros_like(dy) : dy / saved.scalar<"other">()};
}
TAPER_DERIVATIVE(pow_Tensor_Scalar, "self") {
  const double e = saved.real<"exponent">();
  if (e == 0) return {zeros_like(dy)};
  return {dy * (pow(saved.tensor<"self">(), Scalar(e - 1)) * e)};
}
TAPER_DERIVATIVE(pow_Tensor_Tensor, "self", "exponent", "result") {
  const Tensor x = saved.tensor<"self">(), e = saved.tensor<"exponent">();
  Tensor dx, de;
  if (saved.needs<"self">()) dx = masked_fill(dy * (e * pow(x, e - 1)), e == 0, 0);
  if (saved.needs<"exponent">())
    de = masked_fill(dy * (saved.result() * log(x)), logical_and(x == 0, e >= 0), 0);
  return {dx, de};
}
TAPER_DERIVATIVE(pow_Scalar, "exponent", "result") {
  const double base = saved.real<"self">();
  const Tensor de = dy * (saved.result() * std::log(base));
  return {base == 0 ? masked_fill(de, saved.tensor<"exponent">() >= 0, 0) : de};
}
TAPER_DERIVATIVE(fmod_Tensor, "self", "other") {
  return {dy, -dy * div(saved.tensor<"self">(), saved.tensor<"other">(), "trunc")};
}
TAPER_DERIVATIVE(fmod_Scalar) { return {dy}; }
TAPER_DERIVATIVE(remainder_Tensor, "self", "other") {
  return {dy, -dy * div(saved.tensor<"self">(), saved.tensor<"other">(), "floor")};
}
TAPER_DERIVATIVE(remainder_Scalar) { return {dy}; }
// Equal arguments share the gradient.
TAPER_DERIVATIVE(maximum, "self", "other") {
  const Tensor a = saved.tensor<"self">(), b = saved.tensor<"other">();
  const Tensor shared = where(eq(a, b), dy * 0.5, dy);
  return {masked_fill(shared, a < b, 0), masked_fill(shared, a > b, 0)};
}
TAPER_DERIVATIVE(minimum, "self", "other") {
  const Tensor a = saved.tensor<"self">(), b = saved.tensor<"other">();
  const Tensor shared = where(eq(a, b), dy * 0.5, dy);
  return {masked_fill(shared, a > b, 0), masked_fill(shared, a < b, 0)};
}
TAPER_DERIVATIVE(atan2, "self", "other") {
  const Tensor y = saved.tensor<"self">(), x = saved.tensor<"other">();
  const Tensor scaled = masked_fill(dy / (x * x + y * y), logical_and(x == 0, y == 0), 0);
  return {scaled * x, -scaled * y};
}

TAPER_DERIVATIVE(hypot, "self", "other", "result") {
  const Tensor y = saved.result();
  return {dy * (saved.tensor<"self">() / y), dy * (saved.tensor<"other">() / y)};
}
TAPER_DERIVATIVE(copysign_Tensor, "self", "result") {
  return {copied_sign(dy, saved.tensor<"self">(), saved.result()), zeros_like(dy)};
}
TAPER_DERIVATIVE(copysign_Scalar, "self", "result") {
  return {copied_sign(dy, saved.tensor<"self">(), saved.result())};
}
// Where self equals other, self has no gradient.
TAPER_DERIVATIVE(nextafter, "self", "other") {
  const Tensor self = saved.tensor<"self">(), other = saved.tensor<"other">();
  return {masked_fill(dy, eq(self, other), 0), zeros_like(dy)};
}
// Equal arguments share the gradient. If both are NaN, self gets it.
TAPER_DERIVATIVE(fmax, "self", "other") {
  const Tensor a = saved.tensor<"self">(), b = saved.tensor<"other">();
  const Tensor shared = where(eq(a, b), dy * 0.5, dy), nan = isnan(b);
  return {keep(shared, logical_or(a >= b, nan)), masked_fill(shared, logical_or(a > b, nan), 0)};
}
TAPER_DERIVATIVE(fmin, "self", "other") {
  const Tensor a = saved.tensor<"self">(), b = saved.tensor<"other">();
  const Tensor shared = where(eq(a, b), dy * 0.5, dy), nan = isnan(b);
  return {keep(shared, logical_or(a <= b, nan)), masked_fill(shared, logical_or(a < b, nan), 0)};
}
TAPER_DERIVATIVE(logaddexp, "self", "other") {
  const Tensor d = saved.tensor<"self">() - saved.tensor<"other">();
  return {dy * sigmoid(d), dy * sigmoid(-d)};
}
TAPER_DERIVATIVE(logaddexp2, "self", "other") {
  const Tensor d = (saved.tensor<"self">() - saved.tensor<"other">()) * ln2;
  return {dy * sigmoid(d), dy * sigmoid(-d)};
}
TAPER_DERIVATIVE(xlogy_Tensor, "self", "other") {
  const Tensor a = saved.tensor<"self">(), b = saved.tensor<"other">();
  const auto counts = [&] { return logical_not(logical_and(a == 0, b <= 0)); };
  return {saved.needs<"self">() ? dy * xlogy(counts().to(dy.dtype()), b) : Tensor(),
          saved.needs<"other">() ? dy * (a / b) : Tensor()};
}

TAPER_DERIVATIVE(addcmul, "tensor1", "tensor2") {
  const Tensor d = scaled(dy, saved.scalar<"value">());
  return {dy, saved.needs<"tensor1">() ? d * saved.tensor<"tensor2">() : Tensor(),
          saved.needs<"tensor2">() ? d * saved.tensor<"tensor1">() : Tensor()};
}
TAPER_DERIVATIVE(addcdiv, "tensor1", "tensor2") {
  const Tensor a = saved.tensor<"tensor1">(), b = saved.tensor<"tensor2">(),
               d = scaled(dy, saved.scalar<"value">());
  return {dy, saved.needs<"tensor1">() ? d / b : Tensor(),
          saved.needs<"tensor2">() ? -d * (a / (b * b)) : Tensor()};
}
TAPER_DERIVATIVE(lerp_Scalar) {
  const double weight = saved.real<"weight">();
  return {dy * (1 - weight), dy * weight};
}
TAPER_DERIVATIVE(lerp_Tensor, "self", "end", "weight") {
  const Tensor weight = saved.tensor<"weight">();
  return {
      dy * (1 - weight), dy * weight,
      saved.needs<"weight">() ? dy * (saved.tensor<"end">() - saved.tensor<"self">()) : Tensor()};
}

// ---- selection ----

TAPER_DERIVATIVE(where_self, "condition") {
  const Tensor condition = saved.tensor<"condition">();
  return {Tensor(), keep(dy, condition), masked_fill(dy, condition, 0)};
}
TAPER_DERIVATIVE(masked_fill_Scalar, "mask") {
  return {masked_fill(dy, saved.tensor<"mask">(), 0), Tensor()};
}

}  // namespace taper::eager::derivatives
