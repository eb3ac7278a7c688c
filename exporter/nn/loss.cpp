#include "taper/exporter/nn/loss.h"

#include <cmath>
#include <numbers>

#include "taper/exporter/eager/decompositions/reduced_loss.h"
#include "taper/exporter/eager/eager.h"

namespace taper::nn {
namespace {

using eager::call;
using eager::decompositions::reduced;

int64_t number(Reduction reduction) { return static_cast<int64_t>(reduction); }

}  // namespace

Tensor CrossEntropyLoss::forward(const Tensor& input, const Tensor& target, Location here) {
  return eager::cross_entropy(input, target, weight, reduction(), ignore_index_, label_smoothing_,
                              here);
}
Tensor NLLLoss::forward(const Tensor& input, const Tensor& target, Location here) {
  return eager::nll_loss(input, target, weight, reduction(), ignore_index_, here);
}
Tensor SmoothL1Loss::forward(const Tensor& input, const Tensor& target, Location here) {
  return eager::smooth_l1_loss(input, target, reduction(), beta_, here);
}
Tensor HuberLoss::forward(const Tensor& input, const Tensor& target, Location here) {
  return eager::huber_loss(input, target, reduction(), delta_, here);
}
Tensor BCELoss::forward(const Tensor& input, const Tensor& target, Location here) {
  return eager::binary_cross_entropy(input, target, weight, reduction(), here);
}
Tensor BCEWithLogitsLoss::forward(const Tensor& input, const Tensor& target, Location here) {
  return eager::binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction(),
                                                 here);
}
Tensor KLDivLoss::forward(const Tensor& input, const Tensor& target, Location here) {
  const Tensor loss = eager::kl_div(input, target, reduction(), options_.log_target, here);
  if (!options_.batch_mean) return loss;
  const Dim batch = input.size(0, here);
  if (batch.is_constant()) return eager::div(loss, Scalar(batch.value()), here);
  const Tensor examples = eager::ones({batch}, loss.dtype(), here);
  return eager::div(loss, eager::sum(examples, std::nullopt, here), here);
}

Tensor PoissonNLLLoss::forward(const Tensor& input, const Tensor& target, Location here) {
  const PoissonNLLLossOptions& o = options_;
  return call<ops::poisson_nll_loss>(here, input, target, o.log_input, o.full, o.eps,
                                     number(reduction()));
}

Tensor GaussianNLLLoss::forward(const Tensor& input, const Tensor& target, const Tensor& var,
                                Location here) {
  const PlaceScope scope(here);
  const Tensor given = var.rank() + 1 == input.rank() ? var.unsqueeze(-1) : var;
  // max(var, eps), with the gradient of var itself
  const Tensor fixed = given.detach();
  const Tensor variance = given + (eager::clamp_min(fixed, Scalar(options_.eps)) - fixed);
  const Tensor distance = input - target;
  Tensor loss = (eager::log(variance) + distance * distance / variance) * 0.5;
  if (options_.full) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return reduced("GaussianNLLLoss", loss, number(reduction()));
}

Tensor MultiLabelSoftMarginLoss::forward(const Tensor& input, const Tensor& target, Location here) {
  const PlaceScope scope(here);
  const Tensor losses =
      eager::binary_cross_entropy_with_logits(input, target, weight, {}, Reduction::none);
  return reduced("MultiLabelSoftMarginLoss", eager::mean(losses, {-1}), number(reduction()));
}

Tensor HingeEmbeddingLoss::forward(const Tensor& input, const Tensor& target, Location here) {
  return call<ops::hinge_embedding_loss>(here, input, target, margin_, number(reduction()));
}
Tensor CosineEmbeddingLoss::forward(const Tensor& input1, const Tensor& input2,
                                    const Tensor& target, Location here) {
  return call<ops::cosine_embedding_loss>(here, input1, input2, target, margin_,
                                          number(reduction()));
}
Tensor MarginRankingLoss::forward(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                  Location here) {
  return call<ops::margin_ranking_loss>(here, input1, input2, target, margin_, number(reduction()));
}
Tensor TripletMarginLoss::forward(const Tensor& anchor, const Tensor& positive,
                                  const Tensor& negative, Location here) {
  const TripletMarginLossOptions& o = options_;
  return call<ops::triplet_margin_loss>(here, anchor, positive, negative, o.margin, o.p, o.eps,
                                        o.swap, number(reduction()));
}
Tensor TripletMarginWithDistanceLoss::forward(const Tensor& anchor, const Tensor& positive,
                                              const Tensor& negative, Location here) {
  const PlaceScope scope(here);
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return options_.distance_function ? options_.distance_function(a, b)
                                      : eager::pairwise_distance(a, b);
  };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (options_.swap) far = eager::minimum(far, distance(positive, negative));
  return reduced("TripletMarginWithDistanceLoss", eager::clamp_min(near - far + options_.margin, 0),
                 number(reduction()));
}
Tensor MultiMarginLoss::forward(const Tensor& input, const Tensor& target, Location here) {
  return call<ops::multi_margin_loss>(here, input, target, Scalar(options_.p),
                                      Scalar(options_.margin), weight, number(reduction()));
}
Tensor CTCLoss::forward(const Tensor& log_probs, const Tensor& targets, const Ints& input_lengths,
                        const Ints& target_lengths, Location here) {
  const CTCLossOptions& o = options_;
  return eager::ctc_loss(log_probs, targets, input_lengths, target_lengths, o.blank, o.reduction,
                         o.zero_infinity, here);
}
Tensor CTCLoss::forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                        const Tensor& target_lengths, Location here) {
  const CTCLossOptions& o = options_;
  return eager::ctc_loss(log_probs, targets, input_lengths, target_lengths, o.blank, o.reduction,
                         o.zero_infinity, here);
}

}  // namespace taper::nn
