#include "taper/exporter/eager/ops/loss.h"

#include "taper/exporter/eager/derivatives/derivative.h"

namespace taper::eager::derivatives {

TAPER_DERIVATIVE(nll_loss_forward, "self", "target", "weight", "result1") {
  return {call<ops::nll_loss_backward>(dy, saved.tensor<"self">(), saved.tensor<"target">(),
                                       saved.tensor<"weight">(), saved.integer<"reduction">(),
                                       saved.dim<"ignore_index">(), saved.result(1)),
          {},
          {}};
}

// The gradient is linear in grad_output, with the same factors with which the loss is linear in
// self.
TAPER_DERIVATIVE(nll_loss_backward, "target", "weight") {
  const auto [d_grad_output, total_weight] =
      call<ops::nll_loss_forward>(dy, saved.tensor<"target">(), saved.tensor<"weight">(),
                                  saved.integer<"reduction">(), saved.dim<"ignore_index">());
  return {d_grad_output, {}, {}, {}, {}};
}

}  // namespace taper::eager::derivatives
