#include "taper/exporter/llm/short_convolution.h"

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/attention.h"

namespace taper::llm {

using namespace eager;

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
  keep(state, narrow(all, -1, x.size(1), kernel_ - 1), step);
  return conv1d(all, filter, bias, {1}, {0}, {1}, channels_).transpose(1, 2);
}

}  // namespace taper::llm
