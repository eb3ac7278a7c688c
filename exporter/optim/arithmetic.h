// Arithmetic that updates share. step() sets the place: each operation is at the line that called
// it.
#pragma once
#include <cmath>
#include <string>
#include <utility>

#include "taper/exporter/eager/eager.h"

namespace taper::optim {

using eager::Tensor;

/// 1 - a
inline Tensor one_minus(const Tensor& a) { return a * -1.0 + 1.0; }
/// 1 - betaᵗ, by way of expm1: for beta near 1 the difference itself would lose most of its digits
/// in f32.
inline Tensor one_minus_power(double beta, const Tensor& t) {
  return beta == 0 ? eager::full_like(t, 1) : -eager::expm1(t * std::log(beta));
}

/// mean = keep · mean + (1 - keep) · value, in place.
inline void average(Tensor& mean, double keep, const Tensor& value) {
  mean.mul_(keep).add_(value, 1 - keep);
}
/// The gradient, or its negative, plus weight_decay · parameter.
inline Tensor decayed(const Tensor& gradient, bool maximize, const Tensor& parameter,
                      double weight_decay) {
  const Tensor g = maximize ? -gradient : gradient;
  return weight_decay == 0 ? g : eager::add(g, parameter, weight_decay);
}
/// parameter = (1 - lr · weight_decay) · parameter, in place: decay that does not enter the
/// gradient.
inline void shrink(Tensor& parameter, const Tensor& lr, double weight_decay) {
  if (weight_decay != 0) parameter.mul_(lr * -weight_decay + 1.0);
}

/// The gradient for Adam and its relatives, with weight decay. The running means of the gradient
/// and of its square take it in first. With decoupled weight decay the parameter shrinks instead.
template <class Options, class Moments>
Tensor update_moments(const Options& o, bool decoupled_weight_decay, Tensor& parameter,
                      const Tensor& gradient, const Tensor& lr, Moments& moments) {
  const Tensor g =
      decayed(gradient, o.maximize, parameter, decoupled_weight_decay ? 0 : o.weight_decay);
  if (decoupled_weight_decay) shrink(parameter, lr, o.weight_decay);
  average(moments.mean, o.betas.first, g);
  average(moments.square, o.betas.second, g * g);
  return g;
}

}  // namespace taper::optim
