// Attention of a text to a source, which an encoder has read, and the layer of decoders made of it.
#pragma once
#include <memory>

#include "taper/exporter/llm/decoder.h"

namespace taper::llm {

/// Keys and values of the source are computed once and stay in a cache.
class CrossAttention : public nn::Module {
 public:
  CrossAttention(const Config& config, const Weights& weights);
  Linear q, k, v, out;
  Cache cache;
  TAPER_LAYER(q, k, v, out, cache)

  /// `states` (batch, m, hidden): what the encoder made of the source.
  void read(const Tensor& states);
  /// x (batch, n, hidden) -> (batch, n, hidden). Each row sees the source up to a last position:
  /// i64 (batch).
  Tensor forward(const Tensor& x, const Tensor& last);
  Tensor operator()(const Tensor& x, const Tensor& last) {
    eager::ModuleScope scope(name());
    return forward(x, last);
  }

 private:
  Tensor in_heads(const Tensor& x) const;
  int64_t heads_, head_dim_;
  double scale_;
};

/// Attention, cross attention and MLP, each with a norm before it and a residual sum behind it.
class CrossLayer : public DecoderLayer {
 public:
  CrossLayer(const Config& config, const Weights& weights, int64_t layer, Norm::Kind norm);
  Norm attention_norm;
  Attention attention;
  Norm cross_norm;
  CrossAttention cross;
  Norm mlp_norm;
  std::unique_ptr<TokenBlock> mlp;
  TAPER_LAYER(attention_norm, attention, cross_norm, cross, mlp_norm, mlp)

  Tensor forward(const Tensor& x, const Step& step) override;
  void read_source(const Tensor& states) override { cross.read(states); }
};

}  // namespace taper::llm
