// Arithmetic that updates share, each operation at the line that called step().
#pragma once
#include <cmath>
#include <string>
#include <utility>

#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/pointwise.h"

namespace taper::optim {

using eager::Tensor;

struct At {
  Location here;

  Tensor add(const Tensor& a, const Tensor& b, double factor = 1) const {
    return eager::add(a, b, Scalar(factor), here);
  }
  Tensor add(const Tensor& a, double b) const { return eager::add(a, Scalar(b), Scalar(1), here); }
  Tensor sub(const Tensor& a, const Tensor& b) const { return eager::sub(a, b, Scalar(1), here); }
  Tensor mul(const Tensor& a, const Tensor& b) const { return eager::mul(a, b, here); }
  Tensor mul(const Tensor& a, double b) const { return eager::mul(a, Scalar(b), here); }
  Tensor div(const Tensor& a, const Tensor& b) const { return eager::div(a, b, here); }
  Tensor sqrt(const Tensor& a) const { return eager::sqrt(a, here); }
  /// 1 - a
  Tensor one_minus(const Tensor& a) const { return add(mul(a, -1), 1.0); }

  /// mean = keep · mean + (1 - keep) · value, in place.
  void average(Tensor& mean, double keep, const Tensor& value) const {
    mean.mul_(Scalar(keep), here).add_(value, Scalar(1 - keep), here);
  }
  /// The gradient, or its negative, plus weight_decay · parameter.
  Tensor decayed(const Tensor& gradient, bool maximize, const Tensor& parameter,
                 double weight_decay) const {
    const Tensor g = maximize ? eager::neg(gradient, here) : gradient;
    return weight_decay == 0 ? g : add(g, parameter, weight_decay);
  }
  /// parameter = (1 - lr · weight_decay) · parameter, in place: decay that does not enter the
  /// gradient.
  void shrink(Tensor& parameter, const Tensor& lr, double weight_decay) const {
    if (weight_decay != 0) parameter.mul_(add(mul(lr, -weight_decay), 1.0), here);
  }
};

/// The gradient as Adam and its kin use it, decayed, after the means of it and of its square have
/// taken it in; with decoupled weight decay the parameter shrinks instead.
template <class Options, class Moments>
Tensor update_moments(const At& at, const Options& o, bool decoupled_weight_decay,
                      Tensor& parameter, const Tensor& gradient, const Tensor& lr,
                      Moments& moments) {
  const Tensor g =
      at.decayed(gradient, o.maximize, parameter, decoupled_weight_decay ? 0 : o.weight_decay);
  if (decoupled_weight_decay) at.shrink(parameter, lr, o.weight_decay);
  at.average(moments.mean, o.betas.first, g);
  at.average(moments.square, o.betas.second, at.mul(g, g));
  return g;
}

/// 1 - betaᵗ, by way of expm1: for beta near 1 the difference itself would lose most of its digits
/// in f32.
inline Tensor one_minus_power(double beta, const Tensor& t, Location here) {
  if (beta == 0) return eager::full_like(t, Scalar(1), {}, here);
  return eager::neg(eager::expm1(eager::mul(t, Scalar(std::log(beta)), here), here), here);
}

}  // namespace taper::optim
