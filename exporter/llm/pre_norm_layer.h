// The layer of most decoders: a norm in front of attention, and one in front of the feed-forward
// part.
#pragma once
#include "taper/exporter/llm/decoder.h"

namespace taper::llm {

struct PreNormOptions {
  AttentionOptions attention = {};
  Norm::Kind norm = Norm::Kind::layer;
  bool has_mlp_norm = true;          ///< false: the feed-forward part reads what attention reads
  bool has_post_norms = false;       ///< what both parts add has a norm, too
  bool parallel = false;             ///< its norm reads the layer's input, not attention's result
  bool residual_after_norm = false;  ///< what the norms give is added, not what they read
  double residual_scale = 1;         ///< of what attention and the feed-forward part add
};

/// With x = attention_norm(input) and y = mlp_norm(a):
///   a = input + attention(x),  result = a + mlp(y)
/// or as the options say.
class PreNormLayer : public DecoderLayer {
 public:
  PreNormLayer(const Config& config, const Weights& weights, int64_t layer,
               const PreNormOptions& options, std::unique_ptr<TokenBlock> mlp);

  Norm attention_norm;
  Attention attention;
  std::unique_ptr<Norm> attention_post_norm, mlp_norm;
  std::unique_ptr<TokenBlock> mlp;
  std::unique_ptr<Norm> mlp_post_norm;
  TAPER_LAYER(attention_norm, attention, attention_post_norm, mlp_norm, mlp, mlp_post_norm)

  Tensor forward(const Tensor& input, const Step& step) override;

 private:
  bool parallel_, residual_after_norm_;
  double residual_scale_;
};

/// With a feed-forward part of this kind.
template <class Mlp>
std::unique_ptr<DecoderLayer> pre_norm_layer(const Config& config, const Weights& weights,
                                             int64_t layer, const PreNormOptions& options) {
  return std::make_unique<PreNormLayer>(config, weights, layer, options,
                                        std::make_unique<Mlp>(config, weights["mlp"]));
}

}  // namespace taper::llm
