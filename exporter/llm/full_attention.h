// Attention in both directions, and the layer that most encoders of texts, sounds and images are
// made of. A. Vaswani and others, "Attention is all you need", arXiv:1706.03762.
#pragma once
#include <memory>

#include "taper/exporter/llm/blocks.h"

namespace taper::llm {

/// All positions see all others. Some checkpoints hold one matrix for queries, keys and values.
class FullAttention : public nn::Module {
 public:
  FullAttention(const Config& config, const Weights& weights);
  Linear q, k, v, out;
  TAPER_LAYER(q, k, v, out)

  /// x (batch, n, hidden) -> (batch, n, hidden). `mask` broadcasts to (batch, heads, n, n): bool,
  /// true where a score counts, or f32, which is added to the scores. Undefined: all count.
  Tensor forward(const Tensor& x, const Tensor& mask = {}) { return attend(x, x, mask); }
  Tensor operator()(const Tensor& x, const Tensor& mask = {}) {
    eager::ModuleScope scope(name());
    return forward(x, mask);
  }
  /// `queries` (batch, n, hidden) attend to `x` (batch, m, hidden).
  Tensor attend(const Tensor& queries, const Tensor& x, const Tensor& mask = {});

 private:
  int64_t heads_, head_dim_;
  double scale_;
};

/// A plain MLP, or a gated one if the checkpoint has a gate.
std::unique_ptr<TokenBlock> make_mlp(const Config& config, const Weights& weights);

/// x + attention(norm(x)), then x + mlp(norm(x)).
class FullLayer : public nn::Module {
 public:
  FullLayer(const Config& config, const Weights& weights, Norm::Kind norm);
  Norm attention_norm;
  FullAttention attention;
  Norm mlp_norm;
  std::unique_ptr<TokenBlock> mlp;
  TAPER_LAYER(attention_norm, attention, mlp_norm, mlp)

  Tensor forward(const Tensor& x, const Tensor& mask = {});
  Tensor operator()(const Tensor& x, const Tensor& mask = {}) {
    eager::ModuleScope scope(name());
    return forward(x, mask);
  }
};

using FullLayers = std::vector<std::unique_ptr<FullLayer>>;
FullLayers make_full_layers(const Config& config, const Weights& weights, Norm::Kind norm);

}  // namespace taper::llm
