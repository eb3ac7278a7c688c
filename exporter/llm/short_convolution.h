// A causal convolution along the text that remembers the last inputs for the next call.
#pragma once
#include "taper/exporter/llm/step.h"
#include "taper/exporter/nn/module.h"

namespace taper::llm {

/// Each channel by itself: y_t = Σ_i filter_i x_(t - kernel + 1 + i) + bias.
class ShortConvolution : public nn::Module {
 public:
  ShortConvolution(const Config& config, const Weights& weights, int64_t channels);
  Tensor filter, bias;  ///< (channels, 1, kernel), (channels)
  Tensor state;         ///< (batch, channels, kernel - 1)
  TAPER_LAYER(filter, bias, state)

  /// x (batch, n, channels) -> (batch, n, channels)
  Tensor forward(const Tensor& x, const Step& step);

 private:
  int64_t channels_, kernel_;
};

}  // namespace taper::llm
