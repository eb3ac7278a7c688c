// Elementary functions of complex numbers, z = a + bi.
#include "taper/exporter/eager/complex/form.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::complex_forms {
namespace {

using Function = Pair (*)(const Pair&);
template <Function f>
Results of_self(const OperatorInfo&, const Boxed* arguments) {
  return {complex_of(f(pair_of(arguments[0].tensor())))};
}

Pair one(const Pair& z) { return {ones_like(z.re), {}}; }

Pair binary_logarithm(const Pair& z) { return logarithm(z) * Scalar(1.4426950408889634); }
Pair decimal_logarithm(const Pair& z) { return logarithm(z) * Scalar(0.43429448190325183); }
// |1 + z|^2 = 1 + (2a + a^2 + b^2), which is exact near 0
Pair logarithm_of_one_plus(const Pair& z) {
  const Pair sum = {add(z.re, 1), z.im};
  const Tensor excess = add(mul(z.re, add(z.re, 2)), mul(z.im, z.im));
  const Tensor near = lt(add(abs(z.re), abs(z.im)), 0.5);
  const Tensor size = mul(log1p(masked_fill(excess, logical_not(near), 0)), 0.5);
  return {where(near, size, log(magnitude(sum))), phase(sum)};
}
// e^a cos b - 1 = (e^a - 1) cos b - 2 sin(b / 2)^2
Pair exponential_minus_one(const Pair& z) {
  const Tensor half = sin(mul(z.im, 0.5));
  return {sub(mul(expm1(z.re), cos(z.im)), mul(mul(half, half), 2)), mul(exp(z.re), sin(z.im))};
}
Pair binary_exponential(const Pair& z) { return exponential(z * Scalar(0.6931471805599453)); }
Pair reciprocal_square_root(const Pair& z) { return one(z) / square_root(z); }

Pair hyperbolic_sine(const Pair& z) {
  return {mul(sinh(z.re), cos(z.im)), mul(cosh(z.re), sin(z.im))};
}
Pair hyperbolic_cosine(const Pair& z) {
  return {mul(cosh(z.re), cos(z.im)), mul(sinh(z.re), sin(z.im))};
}
// (sinh a cosh a + i sin b cos b) / (sinh^2 a + cos^2 b). From |a| = 20 on, the result is 1 or -1.
Pair hyperbolic_tangent(const Pair& z) {
  const Tensor a = clamp(z.re, -20, 20), s = sinh(a), c = cos(z.im);
  const Tensor below = add(mul(s, s), mul(c, c));
  return {div(mul(s, cosh(a)), below), div(mul(sin(z.im), c), below)};
}

/// iz, and back.
Pair times_i(const Pair& z) { return {neg(z.im), z.re}; }
Pair over_i(const Pair& z) { return {z.im, neg(z.re)}; }
Pair sine(const Pair& z) { return over_i(hyperbolic_sine(times_i(z))); }
Pair cosine(const Pair& z) { return hyperbolic_cosine(times_i(z)); }
Pair tangent(const Pair& z) { return over_i(hyperbolic_tangent(times_i(z))); }

// W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign bit",
// 1987. `below` and `above` are the roots of 1 - z and 1 + z.
Pair arc_sine(const Pair& z) {
  const Pair below = square_root(one(z) - z), above = square_root(one(z) + z);
  return {atan2(z.re, (below * above).re), asinh((conjugate(below) * above).im)};
}
Pair arc_cosine(const Pair& z) {
  const Pair below = square_root(one(z) - z), above = square_root(one(z) + z);
  return {mul(atan2(below.re, above.re), 2), asinh((conjugate(above) * below).im)};
}
Pair area_cosine(const Pair& z) {
  const Pair below = square_root(z - one(z)), above = square_root(z + one(z));
  return {asinh((conjugate(below) * above).re), mul(atan2(below.im, above.re), 2)};
}
Pair area_sine(const Pair& z) { return over_i(arc_sine(times_i(z))); }
Pair area_tangent(const Pair& z) {
  return (logarithm_of_one_plus(z) - logarithm_of_one_plus(-z)) * Scalar(0.5);
}
Pair arc_tangent(const Pair& z) { return over_i(area_tangent(times_i(z))); }

// 1 / (1 + e^-z), or e^z / (1 + e^z): the form whose power does not overflow
Pair logistic(const Pair& z) {
  const Tensor right = ge(z.re, 0);
  const Pair small = exponential({where(right, neg(z.re), z.re), where(right, neg(z.im), z.im)});
  const Pair above = {masked_fill(small.re, right, 1), masked_fill(small.im, right, 0)};
  return above / (one(z) + small);
}

Pair swish(const Pair& z) { return z * logistic(z); }

}  // namespace

TAPER_COMPLEX_FORM(exp, of_self<exponential>)
TAPER_COMPLEX_FORM(exp2, of_self<binary_exponential>)
TAPER_COMPLEX_FORM(expm1, of_self<exponential_minus_one>)
TAPER_COMPLEX_FORM(log, of_self<logarithm>)
TAPER_COMPLEX_FORM(log2, of_self<binary_logarithm>)
TAPER_COMPLEX_FORM(log10, of_self<decimal_logarithm>)
TAPER_COMPLEX_FORM(log1p, of_self<logarithm_of_one_plus>)
TAPER_COMPLEX_FORM(sqrt, of_self<square_root>)
TAPER_COMPLEX_FORM(rsqrt, of_self<reciprocal_square_root>)
TAPER_COMPLEX_FORM(sin, of_self<sine>)
TAPER_COMPLEX_FORM(cos, of_self<cosine>)
TAPER_COMPLEX_FORM(tan, of_self<tangent>)
TAPER_COMPLEX_FORM(sinh, of_self<hyperbolic_sine>)
TAPER_COMPLEX_FORM(cosh, of_self<hyperbolic_cosine>)
TAPER_COMPLEX_FORM(tanh, of_self<hyperbolic_tangent>)
TAPER_COMPLEX_FORM(asin, of_self<arc_sine>)
TAPER_COMPLEX_FORM(acos, of_self<arc_cosine>)
TAPER_COMPLEX_FORM(atan, of_self<arc_tangent>)
TAPER_COMPLEX_FORM(asinh, of_self<area_sine>)
TAPER_COMPLEX_FORM(acosh, of_self<area_cosine>)
TAPER_COMPLEX_FORM(atanh, of_self<area_tangent>)
TAPER_COMPLEX_FORM(sigmoid, of_self<logistic>)
TAPER_COMPLEX_FORM(silu, of_self<swish>)

// what joint graphs of PyTorch call
TAPER_COMPLEX(sigmoid_backward) {
  const Pair y = pair_of(a.tensor<"output">());
  return {complex_of(pair_of(a.tensor<"grad_output">()) * conjugate(y * (one(y) - y)))};
}
TAPER_COMPLEX(tanh_backward) {
  const Pair y = pair_of(a.tensor<"output">());
  return {complex_of(pair_of(a.tensor<"grad_output">()) * conjugate(one(y) - y * y))};
}

}  // namespace taper::eager::complex_forms
