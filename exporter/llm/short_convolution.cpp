#include "taper/exporter/llm/short_convolution.h"

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/attention.h"

namespace taper::llm {

using namespace eager;

Tensor kept(const Tensor& state, const Step& step) {
  Tensor goes_on = ne(step.start, 0).to(state.dtype());
  while (goes_on.rank() < state.rank()) goes_on = goes_on.unsqueeze(-1);
  return state * goes_on;
}

ShortConvolution::ShortConvolution(const Config& c, const Weights& weights, int64_t channels)
    : filter(weights.vector({channels, 1, c.kernel})),
      bias(weights.vector_if({channels}, "bias")),
      state(lazy_zeros({c.batch, channels, c.kernel - 1})),
      channels_(channels),
      kernel_(c.kernel) {
  set_names();
}

Tensor ShortConvolution::forward(const Tensor& x, const Step& step) {
  const Tensor all = cat({kept(state, step), x.transpose(1, 2)}, -1);
  state.copy_(narrow(all, -1, x.size(1), kernel_ - 1));
  return conv1d(all, filter, bias, {1}, {0}, {1}, channels_).transpose(1, 2);
}

}  // namespace taper::llm
