// Derivatives of special functions of two tensors, and of the normal distribution.
#include "taper/exporter/eager/ops/special.h"

#include <cmath>
#include <numbers>

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {
namespace {

/// The derivative with respect to the first argument is not known in closed form.
void refuse_gradient(bool wanted, const char* op) {
  if (wanted)
    throw EagerError(std::string(op) +
                     ": there is no derivative with respect to self; detach() self");
}
/// x^(a - 1) exp(-x) / Γ(a)
Tensor gamma_density(const Tensor& a, const Tensor& x) {
  return exp(xlogy(a - 1, x) - x - lgamma(a));
}

}  // namespace

TAPER_DERIVATIVE(igamma, "self", "other") {
  refuse_gradient(saved.needs<"self">(), "igamma");
  return {Tensor(), dy * gamma_density(saved.tensor<"self">(), saved.tensor<"other">())};
}
TAPER_DERIVATIVE(igammac, "self", "other") {
  refuse_gradient(saved.needs<"self">(), "igammac");
  return {Tensor(), -dy * gamma_density(saved.tensor<"self">(), saved.tensor<"other">())};
}
TAPER_DERIVATIVE(special_zeta, "self", "other") {
  refuse_gradient(saved.needs<"self">(), "special_zeta");
  const Tensor s = saved.tensor<"self">();
  return {Tensor(), dy * -s * zeta(s + 1, saved.tensor<"other">())};
}
// 1 divided by the density of the normal distribution
TAPER_DERIVATIVE(special_ndtri, "result") {
  const Tensor y = saved.result();
  return {dy * exp(y * y * 0.5) * std::sqrt(2 * std::numbers::pi)};
}
TAPER_DERIVATIVE(special_erfcx, "self", "result") {
  return {dy * (saved.tensor<"self">() * saved.result() * 2 - 2 / std::sqrt(std::numbers::pi))};
}
TAPER_DERIVATIVE(frexp_Tensor, "result1") {
  // ldexp divides exactly, also where 2^exponent is no number of the dtype
  return {ldexp(dy, neg(saved.result(1)))};
}

}  // namespace taper::eager::derivatives
