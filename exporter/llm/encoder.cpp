#include "taper/exporter/llm/encoder.h"

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/naming.h"
#include "taper/exporter/llm/read_config.h"

namespace taper::llm {

using namespace eager;

EncoderLayer::EncoderLayer(const Config& c, const Weights& weights)
    : attention(c, weights["attention"]),
      attention_norm(weights["attention_post_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
      mlp(c, weights["mlp"]),
      mlp_norm(weights["mlp_post_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer) {
  set_names();
}

Tensor EncoderLayer::forward(const Tensor& input, const Tensor& seen) {
  const Tensor x = attention_norm(input + attention(input, seen));
  return mlp_norm(x + mlp(x));
}

Encoder::Encoder(const Config& c, const Weights& weights)
    : config(c),
      words(weights["embedding"], c.vocabulary, c.hidden),
      positions(weights["positions"], c.context, c.hidden),
      token_types(weights["token_types"], c.token_types, c.hidden),
      embedding_norm(weights["embedding_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer) {
  for (int64_t i = 0; i < c.layers; ++i)
    layers.push_back(std::make_unique<EncoderLayer>(c, weights["layers"][i]));
  if (weights["pooler"].has())
    pooler = std::make_unique<Linear>(weights["pooler"], c.hidden, c.hidden);
  set_names();
}

Tensor Encoder::embed(const Tensor& ids, const Tensor& types) {
  const Tensor places = cumsum(ones_like(ids), 1) - 1;
  const Tensor kinds = types.defined() ? types : zeros_like(ids);
  return embedding_norm(words(ids) + token_types(kinds) + positions(places));
}

Encoder::Result Encoder::forward(const Tensor& ids, const Tensor& mask, const Tensor& types) {
  const Tensor seen = ne(mask, 0).unsqueeze(1).unsqueeze(1);
  Result result;
  result.last = embed(ids, types);
  result.hidden.push_back(result.last);
  for (const auto& layer : layers) {
    ModuleScope scope(layer->name());
    result.last = layer->forward(result.last, seen);
    result.hidden.push_back(result.last);
  }
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

bool is_encoder(const std::string& path) { return huggingface::model_type(path) == "bert"; }

std::unique_ptr<Encoder> load_encoder(const std::string& path) {
  const huggingface::Folder folder(path);
  return naming(path, [&] {
    Checkpoint checkpoint(folder);
    auto encoder =
        std::make_unique<Encoder>(read_encoder_config(folder.config()), Weights(checkpoint));
    checkpoint.require_all_read();
    return encoder;
  });
}

}  // namespace taper::llm
