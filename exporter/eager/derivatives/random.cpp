#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/pointwise.h"

namespace taper::eager::derivatives {

TAPER_DERIVATIVE(taper_native_dropout, "result1") {
  const double p = saved.real<"p">();
  return {Tensor(),
          masked_fill(dy * Scalar(p < 1 ? 1 / (1 - p) : 0.0), logical_not(saved.result(1)), 0)};
}
// As in PyTorch, numbers that were drawn do not follow the mean.
TAPER_DERIVATIVE(taper_poisson) { return {Tensor(), zeros_like(dy)}; }

}  // namespace taper::eager::derivatives
