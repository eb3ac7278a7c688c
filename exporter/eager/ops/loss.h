// Losses of a prediction `self`, of a floating dtype, against `target`. f16 and bf16 are computed
// in f32. `target` has self's dtype, and its sizes broadcast, unless a line says otherwise.
// `reduction` chooses between the loss of each element, their mean and their sum. The mean of no
// elements is NaN. The result is differentiable in every floating argument. Errors: sizes or dtypes
// that do not fit each other, a class outside its range.
#pragma once
#include "taper/exporter/eager/call.h"
#include "taper/kernels/shapes/loss.h"

namespace taper::eager {

/// -log softmax(self)[target]. self is (classes), (batch, classes) or (batch, classes, …).
///
///   target            i64 classes, without self's class dimension; or probabilities, of self's
///                     shape
///   weight            of each class (classes); the mean is then weighted
///   ignore_index      elements with this target do not count
///   label_smoothing   in [0, 1]: how much of each target is spread over all classes
inline Tensor cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight = {},
                            Reduction reduction = Reduction::mean, int64_t ignore_index = -100,
                            double label_smoothing = 0, Location here = Location::current()) {
  return call<ops::cross_entropy_loss>(here, self, target, weight, static_cast<int64_t>(reduction),
                                       ignore_index, label_smoothing);
}
/// -self[target], where self holds log-probabilities: (classes), (batch, classes) or (batch,
/// classes, …). target is i64.
inline Tensor nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight = {},
                       Reduction reduction = Reduction::mean, int64_t ignore_index = -100,
                       Location here = Location::current()) {
  return call<ops::nll_loss_nd>(here, self, target, weight, static_cast<int64_t>(reduction),
                                ignore_index);
}
/// (self - target)², the squared error.
inline Tensor mse_loss(const Tensor& self, const Tensor& target,
                       Reduction reduction = Reduction::mean, Location here = Location::current()) {
  return call<ops::mse_loss>(here, self, target, static_cast<int64_t>(reduction));
}
/// |self - target|, the absolute error.
inline Tensor l1_loss(const Tensor& self, const Tensor& target,
                      Reduction reduction = Reduction::mean, Location here = Location::current()) {
  return call<ops::l1_loss>(here, self, target, static_cast<int64_t>(reduction));
}
/// With d = |self - target|: d² / (2 beta) where d < beta, else d - beta / 2. beta ≥ 0.
inline Tensor smooth_l1_loss(const Tensor& self, const Tensor& target,
                             Reduction reduction = Reduction::mean, double beta = 1,
                             Location here = Location::current()) {
  return call<ops::smooth_l1_loss>(here, self, target, static_cast<int64_t>(reduction), beta);
}
/// With d = |self - target|: d² / 2 where d < delta, else delta (d - delta / 2). delta > 0. P. J.
/// Huber, 1964.
inline Tensor huber_loss(const Tensor& self, const Tensor& target,
                         Reduction reduction = Reduction::mean, double delta = 1,
                         Location here = Location::current()) {
  return call<ops::huber_loss>(here, self, target, static_cast<int64_t>(reduction), delta);
}
/// -target log(self) - (1 - target) log(1 - self), times weight. self holds probabilities. Each
/// logarithm is at least -100.
inline Tensor binary_cross_entropy(const Tensor& self, const Tensor& target,
                                   const Tensor& weight = {}, Reduction reduction = Reduction::mean,
                                   Location here = Location::current()) {
  return call<ops::binary_cross_entropy>(here, self, target, weight,
                                         static_cast<int64_t>(reduction));
}
/// `binary_cross_entropy` of sigmoid(self), without overflow. `pos_weight` multiplies the positive
/// part.
inline Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                               const Tensor& weight = {},
                                               const Tensor& pos_weight = {},
                                               Reduction reduction = Reduction::mean,
                                               Location here = Location::current()) {
  return call<ops::binary_cross_entropy_with_logits>(here, self, target, weight, pos_weight,
                                                     static_cast<int64_t>(reduction));
}
/// target (log(target) - self), where self holds log-probabilities. With `log_target`, target holds
/// them, too. The mean is over elements.
inline Tensor kl_div(const Tensor& self, const Tensor& target,
                     Reduction reduction = Reduction::mean, bool log_target = false,
                     Location here = Location::current()) {
  return call<ops::kl_div>(here, self, target, static_cast<int64_t>(reduction), log_target);
}

/// log(1 + exp(-target self)); targets are 1 and -1.
inline Tensor soft_margin_loss(const Tensor& self, const Tensor& target,
                               Reduction reduction = Reduction::mean,
                               Location here = Location::current()) {
  return call<ops::soft_margin_loss>(here, self, target, static_cast<int64_t>(reduction));
}
/// self where target is 1, max(0, margin - self) where it is -1.
inline Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin = 1,
                                   Reduction reduction = Reduction::mean,
                                   Location here = Location::current()) {
  return call<ops::hinge_embedding_loss>(here, self, target, margin,
                                         static_cast<int64_t>(reduction));
}
/// max(0, margin - target (input1 - input2)). Where target is 1, input1 should be larger; where it
/// is -1, input2 should be.
inline Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                  double margin = 0, Reduction reduction = Reduction::mean,
                                  Location here = Location::current()) {
  return call<ops::margin_ranking_loss>(here, input1, input2, target, margin,
                                        static_cast<int64_t>(reduction));
}
/// 1 - cos where target (batch) is 1, and max(0, cos - margin) where it is -1. cos is the cosine
/// between the rows of input1 and input2, (batch, features).
inline Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2,
                                    const Tensor& target, double margin = 0,
                                    Reduction reduction = Reduction::mean,
                                    Location here = Location::current()) {
  return call<ops::cosine_embedding_loss>(here, input1, input2, target, margin,
                                          static_cast<int64_t>(reduction));
}
/// max(0, margin + d(anchor, positive) - d(anchor, negative)), where d is the pairwise_distance of
/// order p. With `swap`, d(positive, negative) replaces d(anchor, negative) if it is smaller.
inline Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                  const Tensor& negative, double margin = 1, double p = 2,
                                  double eps = 1e-6, bool swap = false,
                                  Reduction reduction = Reduction::mean,
                                  Location here = Location::current()) {
  return call<ops::triplet_margin_loss>(here, anchor, positive, negative, margin, p, eps, swap,
                                        static_cast<int64_t>(reduction));
}
/// exp(input) - target input. Without `log_input`: input - target log(input + eps). `full` adds
/// Stirling's approximation of log(target!).
inline Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input = true,
                               bool full = false, double eps = 1e-8,
                               Reduction reduction = Reduction::mean,
                               Location here = Location::current()) {
  return call<ops::poisson_nll_loss>(here, input, target, log_input, full, eps,
                                     static_cast<int64_t>(reduction));
}
/// The mean over all classes j of max(0, margin - self[target] + self[j])^p, where j = target
/// counts 0. self is (classes) or (batch, classes), target i64, weight (classes). p is 1 or 2.
inline Tensor multi_margin_loss(const Tensor& self, const Tensor& target, Scalar p = 1,
                                Scalar margin = 1, const Tensor& weight = {},
                                Reduction reduction = Reduction::mean,
                                Location here = Location::current()) {
  return call<ops::multi_margin_loss>(here, self, target, p, margin, weight,
                                      static_cast<int64_t>(reduction));
}
/// Each row of target lists several classes and ends at the first -1. The loss is the sum over
/// listed classes y and other classes j of max(0, 1 - self[y] + self[j]), divided by the number of
/// classes.
inline Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target,
                                     Reduction reduction = Reduction::mean,
                                     Location here = Location::current()) {
  return call<ops::multilabel_margin_loss>(here, self, target, static_cast<int64_t>(reduction));
}

}  // namespace taper::eager
