// The layer of models with a state space in place of attention and of the feed-forward part.
#pragma once
#include "taper/exporter/llm/decoder.h"

namespace taper::llm {

/// x + mixer(norm(x)). A Mixer is a module, made of (config, weights), with forward(input, step).
template <class Mixer>
class MixerLayer : public DecoderLayer {
 public:
  MixerLayer(const Config& c, const Weights& weights, int64_t)
      : norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::rms),
        mixer(c, weights["mixer"]) {
    set_names();
  }
  Norm norm;
  Mixer mixer;
  TAPER_LAYER(norm, mixer)

  Tensor forward(const Tensor& input, const Step& step) override {
    return input + mixer.forward(norm(input), step);
  }
};

}  // namespace taper::llm
