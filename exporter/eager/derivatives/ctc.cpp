#include "taper/exporter/eager/ops/ctc.h"

#include "taper/exporter/eager/derivatives/derivative.h"

namespace taper::eager::derivatives {

// As in PyTorch, the gradient has no derivative of its own.
TAPER_DERIVATIVE(_ctc_loss, "log_probs", "targets", "result0", "result1") {
  if (!dy.defined()) return {{}, {}};
  return {call<ops::_ctc_loss_backward>(dy, saved.tensor<"log_probs">(), saved.tensor<"targets">(),
                                        saved.integers<"input_lengths">(),
                                        saved.integers<"target_lengths">(), saved.result(0),
                                        saved.result(1), saved.integer<"blank">(),
                                        saved.boolean<"zero_infinity">()),
          {}};
}

TAPER_DERIVATIVE(_ctc_loss_Tensor, "log_probs", "targets", "input_lengths", "target_lengths",
                 "result0", "result1") {
  if (!dy.defined()) return {{}, {}, {}, {}};
  return {call<ops::_ctc_loss_backward_Tensor>(
              dy, saved.tensor<"log_probs">(), saved.tensor<"targets">(),
              saved.tensor<"input_lengths">(), saved.tensor<"target_lengths">(), saved.result(0),
              saved.result(1), saved.integer<"blank">(), saved.boolean<"zero_infinity">()),
          {},
          {},
          {}};
}

}  // namespace taper::eager::derivatives
