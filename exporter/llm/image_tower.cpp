#include "taper/exporter/llm/image_tower.h"

#include "taper/exporter/eager/eager.h"

namespace taper::llm {

using namespace eager;

namespace {

constexpr auto layer_norm_kind = Norm::Kind::layer;

/// What goes into each layer, and what the last one gives.
std::vector<Tensor> run(const FullLayers& layers, const Tensor& input, const Tensor& mask = {}) {
  std::vector<Tensor> hidden = {input};
  for (const auto& layer : layers) hidden.push_back((*layer)(hidden.back(), mask));
  return hidden;
}

int64_t tokens_of(const ImageConfig& c, const Weights& weights) {
  return c.patches() + (weights["image_tokens"].has("class_embedding") ? 1 : 0);
}

}  // namespace

AttentionPooling::AttentionPooling(const Config& c, const Weights& weights)
    : query(weights.vector({1, 1, c.hidden}, "probe")),
      attention(c, weights["attention"]),
      norm(weights["norm"], {c.hidden}, c.norm_eps, layer_norm_kind),
      mlp(c, weights["mlp"]) {
  set_names();
}

Tensor AttentionPooling::forward(const Tensor& x) {
  ModuleScope scope(name());
  const Tensor queries = query.expand({x.size(0), 1, x.size(2)});
  const Tensor attended = attention.attend(queries, x);
  return (attended + mlp(norm(attended))).select(1, 0);
}

ImageTower::ImageTower(const ImageConfig& c, const Weights& weights)
    : config(c),
      patch_weight(
          weights["patches"].vector({c.layers.hidden, c.channels, c.patch, c.patch}, "weight")),
      patch_bias(weights["patches"].vector_if({c.layers.hidden}, "bias")),
      class_token(weights["image_tokens"].vector_if({c.layers.hidden}, "class_embedding")),
      positions(weights["positions"].vector({tokens_of(c, weights), c.layers.hidden})),
      layers(make_full_layers(c.layers, weights["layers"], layer_norm_kind)),
      norm(weights["norm"], {c.layers.hidden}, c.layers.norm_eps, layer_norm_kind) {
  if (weights["first_norm"].has())
    first_norm = std::make_unique<Norm>(weights["first_norm"], Ints{c.layers.hidden},
                                        c.layers.norm_eps, layer_norm_kind);
  if (weights["pooling"].has("probe"))
    pooling = std::make_unique<AttentionPooling>(c.layers, weights["pooling"]);
  set_names();
}

Tensor ImageTower::embed(const Tensor& pixels) {
  Tensor x = flatten(conv2d(pixels, patch_weight, patch_bias, config.patch), 2).transpose(1, 2);
  if (class_token.defined())
    x = cat({class_token.expand({x.size(0), 1, config.layers.hidden}), x}, 1);
  x = x + positions;
  return first_norm ? (*first_norm)(x) : x;
}

TowerResult ImageTower::forward(const Tensor& pixels) {
  TowerResult result;
  result.hidden = run(layers, embed(pixels));
  result.last = result.hidden.back();
  if (class_token.defined()) {
    result.embedding = norm(result.last.select(1, 0));
    return result;
  }
  result.last = norm(result.last);
  if (pooling) result.embedding = pooling->forward(result.last);
  return result;
}

TextTower::TextTower(const Config& c, const Weights& weights, const Weights& to_embedding)
    : config(c),
      words(weights["embedding"], c.vocabulary, c.hidden),
      positions(weights["positions"].vector({c.context, c.hidden})),
      layers(make_full_layers(c, weights["layers"], layer_norm_kind)),
      norm(weights["norm"], {c.hidden}, c.norm_eps, layer_norm_kind),
      projection(to_embedding, c.hidden, c.projection) {
  set_names();
}

Tensor TextTower::mask(const Tensor& ids) const {
  if (!config.causal) return {};
  const Tensor at = cumsum(ones_like(narrow(ids, 0, 0, 1)), 1);  // (1, n)
  return ge(at.unsqueeze(-1), at.unsqueeze(-2)).unsqueeze(1);
}

/// The state of the token that ends a text: (batch, hidden). Older files of CLIP call it 2, which
/// it is not: it has the largest number of all.
Tensor TextTower::pooled(const Tensor& last, const Tensor& ids) const {
  constexpr int64_t wrong = 2;
  if (config.end_token < 0) return last.select(1, ids.size(1) - 1);
  const Tensor marks = config.end_token == wrong ? ids : eq(ids, config.end_token).to(DType::i64);
  const Tensor at = argmax(marks, 1).unsqueeze(-1).unsqueeze(-1);  // (batch, 1, 1)
  return gather(last, 1, at.expand({ids.size(0), 1, last.size(2)})).select(1, 0);
}

TowerResult TextTower::forward(const Tensor& ids) {
  TowerResult result;
  result.hidden = run(layers, words(ids) + narrow(positions, 0, 0, ids.size(1)), mask(ids));
  result.last = norm(result.hidden.back());
  result.embedding = projection(pooled(result.last, ids));
  return result;
}

}  // namespace taper::llm
