#include "taper/exporter/llm/full_attention.h"

#include "taper/exporter/eager/eager.h"

namespace taper::llm {

using namespace eager;

namespace {

enum class Part : uint8_t { q, k, v };

/// Of its own, or a third of a joint one.
Linear projection(const Config& c, const Weights& weights, Part part) {
  const int64_t features = c.heads * c.head_dim;
  if (weights.has("in_proj_weight"))
    return Linear(weights, c.hidden, features, 3, static_cast<int64_t>(part));
  constexpr const char* names[] = {"q", "k", "v"};
  return Linear(weights[names[static_cast<size_t>(part)]], c.hidden, features);
}

}  // namespace

FullAttention::FullAttention(const Config& c, const Weights& weights)
    : q(projection(c, weights, Part::q)),
      k(projection(c, weights, Part::k)),
      v(projection(c, weights, Part::v)),
      out(weights["out"], c.heads * c.head_dim, c.hidden),
      heads_(c.heads),
      head_dim_(c.head_dim),
      scale_(c.attention_scale) {
  set_names();
}

Tensor FullAttention::attend(const Tensor& queries, const Tensor& x, const Tensor& mask) {
  const auto in_heads = [&](const Tensor& y) {
    return y.reshape({y.size(0), y.size(1), heads_, head_dim_}).transpose(1, 2);
  };
  const Tensor y = scaled_dot_product_attention(in_heads(q(queries)), in_heads(k(x)),
                                                in_heads(v(x)), mask, 0, false, scale_);
  return out(y.transpose(1, 2).reshape({x.size(0), queries.size(1), heads_ * head_dim_}));
}

std::unique_ptr<TokenBlock> make_mlp(const Config& c, const Weights& weights) {
  if (weights["gate"].has()) return std::make_unique<GatedMlp>(c, weights);
  return std::make_unique<PlainMlp>(c, weights);
}

FullLayer::FullLayer(const Config& c, const Weights& weights, Norm::Kind norm)
    : attention_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, norm),
      attention(c, weights["attention"]),
      mlp_norm(weights["mlp_norm"], {c.hidden}, c.norm_eps, norm),
      mlp(make_mlp(c, weights["mlp"])) {
  set_names();
}

Tensor FullLayer::forward(const Tensor& input, const Tensor& mask) {
  const Tensor x = input + attention(attention_norm(input), mask);
  return x + (*mlp)(mlp_norm(x));
}

FullLayers make_full_layers(const Config& c, const Weights& weights, Norm::Kind norm) {
  FullLayers layers;
  for (int64_t i = 0; i < c.layers; ++i)
    layers.push_back(std::make_unique<FullLayer>(c, weights[i], norm));
  return layers;
}

}  // namespace taper::llm
