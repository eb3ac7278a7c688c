#include "taper/exporter/llm/encoder.h"

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/naming.h"
#include "taper/exporter/llm/read_config.h"

namespace taper::llm {

using namespace eager;

namespace {

/// Attention in both directions, with a norm behind the residual sum; then a plain MLP, the same.
class BertLayer : public EncoderLayer {
 public:
  BertLayer(const Config& c, const Weights& weights)
      : attention(c, weights["attention"]),
        attention_norm(weights["attention_post_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        mlp(c, weights["mlp"]),
        mlp_norm(weights["mlp_post_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer) {
    set_names();
  }
  FullAttention attention;
  Norm attention_norm;
  PlainMlp mlp;
  Norm mlp_norm;
  TAPER_LAYER(attention, attention_norm, mlp, mlp_norm)

  Tensor forward(const Tensor& input, const EncoderStep& step) override {
    const Tensor x = attention_norm(input + attention(input, step.seen));
    return mlp_norm(x + mlp(x));
  }
};

std::unique_ptr<Embedding> embedding_if(const Weights& weights, int64_t rows, int64_t features) {
  return weights.has() ? std::make_unique<Embedding>(weights, rows, features) : nullptr;
}

}  // namespace

std::unique_ptr<EncoderLayer> make_encoder_layer(const Config& c, const Weights& weights,
                                                 int64_t layer) {
  if (c.family == "modernbert") return make_modernbert_layer(c, weights, layer);
  return std::make_unique<BertLayer>(c, weights);
}

Encoder::Encoder(const Config& c, const Weights& weights)
    : config(c),
      words(weights["embedding"], c.vocabulary, c.hidden),
      positions(embedding_if(weights["positions"], c.context, c.hidden)),
      token_types(embedding_if(weights["token_types"], c.token_types, c.hidden)),
      embedding_norm(weights["embedding_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
      rotary_(c.rotary, {}, c.context),
      local_rotary_(c.local_rotary, {}, c.context) {
  for (int64_t i = 0; i < c.layers; ++i)
    layers.push_back(make_encoder_layer(c, weights["layers"][i], i));
  if (weights["norm"].has())
    norm = std::make_unique<Norm>(weights["norm"], Ints{c.hidden}, c.norm_eps, Norm::Kind::layer);
  if (weights["pooler"].has())
    pooler = std::make_unique<Linear>(weights["pooler"], c.hidden, c.hidden);
  set_names();
}

Tensor Encoder::embed(const Tensor& ids, const Tensor& places, const Tensor& types) {
  Tensor x = words(ids);
  if (token_types) x = x + (*token_types)(types.defined() ? types : zeros_like(ids));
  if (positions) x = x + (*positions)(places);
  return embedding_norm(x);
}

EncoderStep Encoder::step(const Tensor& places, const Tensor& mask) const {
  EncoderStep s;
  s.seen = ne(mask, 0).unsqueeze(1).unsqueeze(1);
  s.rotation = rotary_.at(places), s.local_rotation = local_rotary_.at(places);
  if (config.window == 0) return s;
  const Tensor at = places.unsqueeze(1);  // (batch, 1, n)
  const Tensor distance = abs(at.unsqueeze(-1) - at.unsqueeze(-2));
  // a padded token sees itself, so that its sum of weights is not 0
  s.near = logical_and(le(distance, config.window), logical_or(s.seen, eq(distance, 0)));
  return s;
}

Encoder::Result Encoder::forward(const Tensor& ids, const Tensor& mask, const Tensor& types) {
  const Tensor places = cumsum(ones_like(ids), 1) - 1;
  const EncoderStep now = step(places, mask);
  Result result;
  result.last = embed(ids, places, types);
  result.hidden.push_back(result.last);
  for (const auto& layer : layers) {
    ModuleScope scope(layer->name());
    result.last = layer->forward(result.last, now);
    result.hidden.push_back(result.last);
  }
  if (norm) result.last = (*norm)(result.last);
  return result;
}

Tensor Encoder::pooled(const Tensor& last) {
  if (!pooler) throw ExportError("the checkpoint has no pooler");
  return tanh((*pooler)(last.select(1, 0)));
}

Tensor mean_embedding(const Tensor& last, const Tensor& mask) {
  const Tensor seen = mask.to(DType::f32).unsqueeze(-1);
  const Tensor mean = sum(last * seen, {1}) / sum(seen, {1});
  return mean / sqrt(sum(mean * mean, {1}, true));
}

bool is_encoder(const std::string& path) {
  const std::string type = huggingface::model_type(path);
  return type == "bert" || type == "modernbert";
}

std::unique_ptr<Encoder> load_encoder(const std::string& path, const std::string& lora) {
  const huggingface::Folder folder(path);
  return naming(path, [&] {
    Checkpoint checkpoint(folder, lora);
    auto encoder =
        std::make_unique<Encoder>(read_encoder_config(folder.config()), Weights(checkpoint));
    // of training: they guess hidden words and the next sentence
    for (const char* head : {"cls.", "head.", "decoder."}) checkpoint.ignore(head);
    checkpoint.require_all_read();
    return encoder;
  });
}

}  // namespace taper::llm
