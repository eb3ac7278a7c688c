// What the layers of RWKV share: a look at the token before, and states that are matrices.
#pragma once
#include "taper/exporter/llm/blocks.h"
#include "taper/exporter/llm/step.h"

namespace taper::llm {

/// The input of the token before, for each token. Its state is the last one of the call before.
class TokenShift : public nn::Module {
 public:
  explicit TokenShift(const Config& config);
  Tensor state;  ///< (batch, 1, hidden)
  TAPER_LAYER(state)

  /// x (batch, n, hidden) -> the same of the token before
  Tensor forward(const Tensor& x, const Step& step);
};

/// second(act(first(x))) + offset: two products with few features between them.
class SmallProducts : public nn::Module {
 public:
  /// `weights[name]` is the offset; the file has none if `has_offset` is false. The products are
  /// `weights[name + "_1"]` and `weights[name + "_2"]`.
  SmallProducts(const Config& config, const Weights& weights, const std::string& name, int64_t rank,
                bool has_offset = true);
  Linear first, second;
  Tensor offset;  ///< (hidden), or undefined
  TAPER_LAYER(first, second, offset)

  Tensor forward(const Tensor& x, Tensor (*act)(const Tensor&));
};

/// A layer norm of each head, with weights and a bias of its own.
class HeadNorm : public nn::Module {
 public:
  HeadNorm(const Config& config, const Weights& weights);
  Tensor weight, bias;  ///< (hidden)
  TAPER_LAYER(weight, bias)

  /// x (batch, n, heads, features) -> (batch, n, hidden)
  Tensor forward(const Tensor& x) const;
};

/// (batch, n, hidden) -> (batch, n, heads, features)
Tensor in_heads(const Tensor& x, const Config& config);

/// What a token does with the matrix of each head: `state` (batch, heads, features, features) and
/// `slice` (batch, heads, parts, features) of the token give the next state and the result
/// (batch, heads, features).
struct MatrixStep {
  Tensor state, result;
};

/// Calls `token` for each token, in order. `parts`: (batch, n, heads, features) each. The results
/// are (batch, n, heads, features). The sums of a token do not depend on the others in a call.
Tensor for_each_token(MatrixStep (*token)(const Tensor& state, const Tensor& slice), Tensor& state,
                      const std::vector<Tensor>& parts, const Step& step);

}  // namespace taper::llm
