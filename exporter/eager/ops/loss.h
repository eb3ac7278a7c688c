// Losses. `reduction` says what becomes of the elements' losses: nothing, their mean, their sum.
#pragma once
#include "taper/exporter/eager/call.h"
#include "taper/kernels/shapes/loss.h"

namespace taper::eager {

/// -log softmax(self)[target]: self (classes), (batch, classes) or (batch, classes, …).
///   target           i64 classes, without self's class dimension; or probabilities, of self's
///   shape weight           of each class (classes); the mean is then weighted ignore_index this
///   target counts nothing label_smoothing  in [0, 1]: how much of each target is spread over all
///   classes
inline Tensor cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight = {},
                            Reduction reduction = Reduction::mean, int64_t ignore_index = -100,
                            double label_smoothing = 0, Location here = Location::current()) {
  return call<ops::cross_entropy_loss>(here, self, target, weight, static_cast<int64_t>(reduction),
                                       ignore_index, label_smoothing);
}
/// -self[target] of log-probabilities: self (classes), (batch, classes) or (batch, classes, …),
/// target i64.
inline Tensor nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight = {},
                       Reduction reduction = Reduction::mean, int64_t ignore_index = -100,
                       Location here = Location::current()) {
  return call<ops::nll_loss_nd>(here, self, target, weight, static_cast<int64_t>(reduction),
                                ignore_index);
}
/// (self - target)²
inline Tensor mse_loss(const Tensor& self, const Tensor& target,
                       Reduction reduction = Reduction::mean, Location here = Location::current()) {
  return call<ops::mse_loss>(here, self, target, static_cast<int64_t>(reduction));
}
/// |self - target|
inline Tensor l1_loss(const Tensor& self, const Tensor& target,
                      Reduction reduction = Reduction::mean, Location here = Location::current()) {
  return call<ops::l1_loss>(here, self, target, static_cast<int64_t>(reduction));
}
/// With d = |self - target|: d² / (2 beta) below beta, d - beta / 2 beyond.
inline Tensor smooth_l1_loss(const Tensor& self, const Tensor& target,
                             Reduction reduction = Reduction::mean, double beta = 1,
                             Location here = Location::current()) {
  return call<ops::smooth_l1_loss>(here, self, target, static_cast<int64_t>(reduction), beta);
}
/// With d = |self - target|: d² / 2 below delta, delta (d - delta / 2) beyond.
inline Tensor huber_loss(const Tensor& self, const Tensor& target,
                         Reduction reduction = Reduction::mean, double delta = 1,
                         Location here = Location::current()) {
  return call<ops::huber_loss>(here, self, target, static_cast<int64_t>(reduction), delta);
}
/// -target log(self) - (1 - target) log(1 - self) of probabilities, each logarithm at least -100;
/// times weight.
inline Tensor binary_cross_entropy(const Tensor& self, const Tensor& target,
                                   const Tensor& weight = {}, Reduction reduction = Reduction::mean,
                                   Location here = Location::current()) {
  return call<ops::binary_cross_entropy>(here, self, target, weight,
                                         static_cast<int64_t>(reduction));
}
/// The same of sigmoid(self), without overflow. `pos_weight` multiplies the positive part.
inline Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                               const Tensor& weight = {},
                                               const Tensor& pos_weight = {},
                                               Reduction reduction = Reduction::mean,
                                               Location here = Location::current()) {
  return call<ops::binary_cross_entropy_with_logits>(here, self, target, weight, pos_weight,
                                                     static_cast<int64_t>(reduction));
}
/// target (log(target) - self) for log-probabilities self; with `log_target`, target is a logarithm
/// too. The mean is over elements.
inline Tensor kl_div(const Tensor& self, const Tensor& target,
                     Reduction reduction = Reduction::mean, bool log_target = false,
                     Location here = Location::current()) {
  return call<ops::kl_div>(here, self, target, static_cast<int64_t>(reduction), log_target);
}

}  // namespace taper::eager
