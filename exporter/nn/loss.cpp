#include "taper/exporter/nn/loss.h"

#include "taper/exporter/eager/ops/loss.h"
#include "taper/exporter/eager/ops/pointwise.h"

namespace taper::nn {

Tensor CrossEntropyLoss::forward(const Tensor& input, const Tensor& target, Location here) {
  return eager::cross_entropy(input, target, weight, reduction(), ignore_index_, label_smoothing_,
                              here);
}
Tensor NLLLoss::forward(const Tensor& input, const Tensor& target, Location here) {
  return eager::nll_loss(input, target, weight, reduction(), ignore_index_, here);
}
Tensor MSELoss::forward(const Tensor& input, const Tensor& target, Location here) {
  return eager::mse_loss(input, target, reduction(), here);
}
Tensor L1Loss::forward(const Tensor& input, const Tensor& target, Location here) {
  return eager::l1_loss(input, target, reduction(), here);
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
  return options_.batch_mean ? eager::div(loss, Scalar(input.size(0, here).value()), here) : loss;
}

}  // namespace taper::nn
