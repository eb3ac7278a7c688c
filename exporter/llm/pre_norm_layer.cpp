#include "taper/exporter/llm/pre_norm_layer.h"

namespace taper::llm {

PreNormLayer::PreNormLayer(const Config& c, const Weights& weights, int64_t layer,
                           const PreNormOptions& o, std::unique_ptr<TokenBlock> feed_forward)
    : attention_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, o.norm),
      attention(c, weights["attention"], layer, o.attention),
      mlp(std::move(feed_forward)),
      parallel_(o.parallel),
      residual_after_norm_(o.residual_after_norm),
      residual_scale_(o.residual_scale) {
  if (o.has_mlp_norm)
    mlp_norm = std::make_unique<Norm>(weights["mlp_norm"], Ints{c.hidden}, c.norm_eps, o.norm);
  set_names();
}

Tensor PreNormLayer::forward(const Tensor& input, const Step& step) {
  const auto residual = [&](const Tensor& normed, const Tensor& plain) {
    return residual_after_norm_ ? normed : plain;
  };
  const auto scaled = [&](const Tensor& x) {
    return residual_scale_ == 1 ? x : x * residual_scale_;
  };
  const Tensor x = attention_norm(input);
  const Tensor attended = residual(x, input) + scaled(attention(x, step));
  const Tensor y = mlp_norm ? (*mlp_norm)(parallel_ ? input : attended) : x;
  return residual(y, attended) + scaled((*mlp)(y));
}

}  // namespace taper::llm
