#include "taper/exporter/llm/decoder.h"

#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/read_config.h"

namespace taper::llm {

using namespace eager;

namespace {

Norm::Kind kind_of(Family::FinalNorm norm) {
  switch (norm) {
    case Family::FinalNorm::rms:
      return Norm::Kind::rms;
    case Family::FinalNorm::rms_plus_one:
      return Norm::Kind::rms_plus_one;
    default:
      return Norm::Kind::layer;
  }
}

/// Divisors of the frequencies, which GGUF files store for Llama 3.
Tensor rotary_factors(const Config& c, const Weights& weights) {
  if (c.rotary.frequencies.empty()) return {};
  return weights["rotary_factors"].vector_if({c.rotary.dims / 2}, "weight");
}

/// Features, in order, at the places where `places` (batch, n) is true.
Tensor put_features(const Tensor& x, const Tensor& places, const Tensor& features) {
  const Dim batch = x.size(0), n = x.size(1), hidden = x.size(2);
  const Tensor count = cumsum(places.to(DType::i64).reshape({batch * n}), 0);
  const Tensor rows = index_select(features, 0, clamp_min(count - 1, 0));
  return where(places.unsqueeze(-1), rows.reshape({batch, n, hidden}), x);
}

}  // namespace

Decoder::Decoder(const Config& c, const Weights& weights)
    : Decoder(c, weights, family_named(c.family)) {}

Decoder::Decoder(const Config& c, const Weights& weights, const Family& family)
    : config(c),
      embedding(std::make_unique<Embedding>(weights["embedding"], c.vocabulary, c.hidden)),
      rotary_(c.rotary, rotary_factors(c, weights), c.capacity),
      local_rotary_(c.local_rotary, {}, c.capacity) {
  const auto make_norm = [&](const char* part) {
    return std::make_unique<Norm>(weights[part], Ints{c.hidden}, c.norm_eps, kind_of(family.norm));
  };
  if (weights["positions"].has() && c.capacity > c.context)
    throw ExportError("the model has learned positions for " + std::to_string(c.context) +
                      " tokens; a context of " + std::to_string(c.capacity) + " is too long");
  if (weights["positions"].has())
    learned_positions =
        std::make_unique<Embedding>(weights["positions"], c.context + c.position_offset, c.hidden);
  if (weights["embedding_norm"].has()) embedding_norm = make_norm("embedding_norm");
  if (c.distance_buckets > 0)
    relative_bias =
        std::make_unique<RelativeBias>(c, weights["layers"][int64_t{0}]["attention"], false);
  for (int64_t i = 0; i < c.layers; ++i)
    layers.push_back(family.make_layer(c, weights["layers"][i], i));
  if (c.window_jumps && c.window > 0)
    jumping_window_length = Tensor::from(std::vector<int64_t>{c.window}, {1});
  norm = make_norm("norm");
  // some checkpoints store the head that is tied, too
  if (c.tied && weights["head"].has()) (void)weights["head"].matrix(c.vocabulary, c.hidden);
  head = c.tied ? std::make_unique<Linear>(embedding->weight)
                : std::make_unique<Linear>(weights["head"], c.hidden, c.vocabulary);
  set_names();
}

Step Decoder::step(const Tensor& ids, const Tensor& start, bool is_whole) const {
  const int64_t keys = is_whole ? ids.size(1).value() : config.capacity;
  const Tensor count = cumsum(ones_like(ids), 1) - 1;
  const Tensor positions = start.unsqueeze(1) + count;
  return {start,
          positions,
          rotary_.at(positions),
          local_rotary_.at(positions),
          relative_bias ? score_bias(positions, keys) : Tensor(),
          {},
          jumping_window(positions, keys),
          {},
          is_whole};
}

/// Of so many keys: later positions are hidden.
Tensor Decoder::score_bias(const Tensor& positions, int64_t count) const {
  const Tensor keys = arange(count, DType::i64);
  const Tensor later = gt(keys, positions.unsqueeze(1).unsqueeze(-1));  // (batch, 1, n, count)
  return masked_fill(relative_bias->at(positions, keys), later, -INFINITY);
}

Tensor Decoder::place_in_table(const Tensor& positions) const {
  return config.position_offset == 0 ? positions : positions + config.position_offset;
}

/// Hides later positions, and those in front of the query's window. Undefined if there is only one
/// such window.
Tensor Decoder::jumping_window(const Tensor& positions, int64_t count) const {
  if (!jumping_window_length.defined() || count <= config.window) return {};
  const Tensor keys = arange(count, DType::i64);
  const Tensor at = positions.unsqueeze(1).unsqueeze(-1);  // (batch, 1, n, 1)
  const Tensor first = floor_divide(at, jumping_window_length) * jumping_window_length;
  const Tensor hidden = logical_or(gt(keys, at), lt(keys, first));
  return masked_fill(zeros_like(hidden, DType::f32), hidden, -INFINITY);
}

Tensor Decoder::embed(const Tensor& ids, const Step& step, const Tensor& features) {
  Tensor x = (*embedding)(ids);
  if (features.defined()) x = put_features(x, eq(ids, config.image_token), features);
  if (config.embedding_scale != 1) x = x * config.embedding_scale;
  if (learned_positions) x = x + (*learned_positions)(place_in_table(step.positions));
  return embedding_norm ? (*embedding_norm)(x) : x;
}

Tensor Decoder::logits(const Tensor& x) {
  Tensor y = (*head)(x);
  if (config.logit_scale != 1) y = y * config.logit_scale;
  const double cap = config.logit_softcap;
  return cap > 0 ? tanh(y / cap) * cap : y;
}

Decoder::Result Decoder::forward(const Tensor& ids, const Tensor& start,
                                 const DecoderOptions& options) {
  Result result;
  const auto keep = [&](const Tensor& x) {
    if (options.keep_hidden) result.hidden.push_back(x);
  };
  if (chosen_adapters != nullptr)
    *chosen_adapters =
        options.adapters.defined() ? options.adapters : zeros_like(start, DType::i64);
  Step now = step(ids, start, false);
  now.source_last = options.source_last, now.batch = options.batch;
  Tensor x = embed(ids, now, options.features);
  keep(x);
  for (const auto& layer : layers) {
    x = (*layer)(x, now);
    keep(x);
  }
  if (!options.all_logits) x = narrow(x, 1, x.size(1) - 1, 1);
  x = (*norm)(x);
  keep(x);
  result.logits = logits(x);
  return result;
}

Tensor Decoder::states_of_texts(const Tensor& ids, bool checkpoints) {
  const Tensor start = zeros({ids.size(0)}, DType::i64);
  if (chosen_adapters != nullptr) *chosen_adapters = start;
  const Step now = step(ids, start, true);
  Tensor x = embed(ids, now, {});
  for (const auto& layer : layers)
    if (checkpoints)
      x = checkpoint([now, layer = layer.get()](const Tensor& t) { return (*layer)(t, now); }, x);
    else
      x = (*layer)(x, now);
  return (*norm)(x);
}

}  // namespace taper::llm
