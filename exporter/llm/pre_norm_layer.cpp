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
  const auto make_norm = [&](const char* name) {
    return std::make_unique<Norm>(weights[name], Ints{c.hidden}, c.norm_eps, o.norm);
  };
  if (o.has_mlp_norm) mlp_norm = make_norm("mlp_norm");
  if (o.has_post_norms) {
    attention_post_norm = make_norm("attention_post_norm");
    mlp_post_norm = make_norm("mlp_post_norm");
  }
  set_names();
}

Tensor PreNormLayer::forward(const Tensor& input, const Step& step) {
  const auto residual = [&](const Tensor& normed, const Tensor& plain) {
    return residual_after_norm_ ? normed : plain;
  };
  const auto added = [&](const Tensor& x, const std::unique_ptr<Norm>& norm) {
    const Tensor y = norm ? (*norm)(x) : x;
    return residual_scale_ == 1 ? y : y * residual_scale_;
  };
  const Tensor x = attention_norm(input);
  const Tensor attended = residual(x, input) + added(attention(x, step), attention_post_norm);
  const Tensor y = mlp_norm ? (*mlp_norm)(parallel_ ? input : attended) : x;
  return residual(y, attended) + added((*mlp)(y), mlp_post_norm);
}

}  // namespace taper::llm
