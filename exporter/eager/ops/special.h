// Special functions, elementwise. Abramowitz and Stegun, "Handbook of Mathematical Functions",
// 1964, has their definitions; kernels/portable/special_functions.h says how they are computed.
// Shapes, dtypes and errors: pointwise.h. Integers and bool give f32. An argument outside the
// domain gives NaN; a pole gives an infinity.
#pragma once
#include <optional>

#include "taper/exporter/eager/ops/signatures.h"

namespace taper::eager {

// ---- the error function and the normal distribution ----

/// The error function, 2/√π ∫₀ˣ exp(-t²) dt.
TAPER_EAGER_UNARY(erf)
/// 1 - erf(x), exact for large x.
TAPER_EAGER_UNARY(erfc)
/// The y with erf(y) = x, for x in [-1, 1].
TAPER_EAGER_UNARY(erfinv)
/// Φ(x), the distribution function of the normal distribution.
inline Tensor ndtr(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_ndtr>(here, self);
}
/// log Φ(x), also where Φ(x) is too small for a number.
inline Tensor log_ndtr(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_log_ndtr>(here, self);
}
/// The x with Φ(x) = self, for self in [0, 1].
inline Tensor ndtri(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_ndtri>(here, self);
}
/// exp(x²) erfc(x), also where the two factors have no number.
inline Tensor erfcx(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_erfcx>(here, self);
}

// ---- the gamma function ----

/// log |Γ(x)|
TAPER_EAGER_UNARY(lgamma)
/// Γ'(x) / Γ(x)
TAPER_EAGER_UNARY(digamma)
/// The n-th derivative of digamma, n ≥ 0.
inline Tensor polygamma(int64_t n, const Tensor& self, Location here = Location::current()) {
  return call<ops::polygamma>(here, n, self);
}
/// The logarithm of the multivariate gamma function of dimension p ≥ 1, for x > (p - 1) / 2:
/// log(π) p (p - 1) / 4 + Σ lgamma(x - k / 2) for k < p.
inline Tensor mvlgamma(const Tensor& self, int64_t p, Location here = Location::current()) {
  return call<ops::mvlgamma>(here, self, p);
}

/// The regularised lower incomplete gamma function: the integral of t^(a - 1) exp(-t) / Γ(a) from 0
/// to x, with a = self ≥ 0 and x = other ≥ 0. There is a derivative with respect to other only.
TAPER_EAGER_BINARY(igamma)
/// 1 - igamma, exact where that is small.
TAPER_EAGER_BINARY(igammac)
/// Hurwitz's zeta function: Σ 1 / (other + k)^self over k ≥ 0, for self > 1. There is a derivative
/// with respect to other only.
inline Tensor zeta(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::special_zeta>(here, self, other);
}
inline Tensor zeta(const Tensor& self, Scalar other, Location here = Location::current()) {
  return call<ops::special_zeta_other_scalar>(here, self, other);
}
inline Tensor zeta(Scalar self, const Tensor& other, Location here = Location::current()) {
  return call<ops::special_zeta_self_scalar>(here, self, other);
}

// ---- modified Bessel functions of the first kind ----

/// I₀(x)
TAPER_EAGER_UNARY(i0)
/// exp(-|x|) I₀(x)
inline Tensor i0e(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_i0e>(here, self);
}
/// I₁(x)
inline Tensor i1(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_i1>(here, self);
}
/// exp(-|x|) I₁(x)
inline Tensor i1e(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_i1e>(here, self);
}

// ---- probabilities ----

/// log(x / (1 - x)). With `eps`, x is limited to [eps, 1 - eps] first.
inline Tensor logit(const Tensor& self, std::optional<double> eps = {},
                    Location here = Location::current()) {
  return call<ops::logit>(here, self, eps);
}
/// -x log(x). 0 gives 0, and negative numbers give minus infinity.
inline Tensor entr(const Tensor& self, Location here = Location::current()) {
  return call<ops::special_entr>(here, self);
}

}  // namespace taper::eager
