#include <cmath>

#include "taper/exporter/llm/config_parts.h"
#include "taper/exporter/llm/read_config.h"

namespace taper::llm {
namespace {

using nlohmann::json;

/// Older files have a key for each rotary embedding.
void read_modernbert_rotary(const Keys& keys, Config& c) {
  const auto rotary = [&](const char* layers, const char* old_key, double usual) {
    RotaryScaling s;
    s.theta = keys.number({old_key}, usual);
    if (const json* given = keys.find({"rope_parameters"});
        given != nullptr && given->contains(layers))
      s = read_rotary_scaling((*given)[layers], keys, c);
    return make_rotary(s, c.head_dim, false);
  };
  c.rotary = rotary("full_attention", "global_rope_theta", 160000);
  c.local_rotary = rotary("sliding_attention", "local_rope_theta", 10000);
}

void read_modernbert(const Keys& keys, Config& c) {
  c.norm_eps = keys.number({"norm_eps"}, 1e-5);
  c.activation = activation_named(keys.text({"hidden_activation"}, "gelu"));
  c.window = keys.positive({"local_attention"}, 128) / 2;
  const int64_t every = keys.positive({"global_attn_every_n_layers"}, 3);
  for (int64_t i = 0; i < c.layers; ++i) c.windowed.push_back(i % every != 0);
  read_modernbert_rotary(keys, c);
}

}  // namespace

Config read_encoder_config(const json& file) {
  const Keys keys(file);
  Config c;
  c.family = keys.text({"model_type"}, "");
  read_sizes(keys, c);
  check(c);
  if (const std::string kind = keys.text({"position_embedding_type"}, "absolute");
      kind != "absolute")
    throw ExportError("config: position_embedding_type \"" + kind + "\" is not supported");
  keys.refuse({"is_decoder"}, "a decoder of this family");
  keys.refuse({"add_cross_attention"}, "cross attention");
  if (c.hidden % c.heads != 0)
    throw ExportError("config: " + std::to_string(c.heads) + " heads do not divide hidden_size");
  c.attention_scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  if (c.is({"modernbert"})) return read_modernbert(keys, c), c;
  c.norm_eps = keys.number({"layer_norm_eps"}, 1e-12);
  c.activation = activation_named(keys.text({"hidden_act"}, "gelu"));
  c.token_types = keys.integer({"type_vocab_size"}, 2);
  return c;
}

}  // namespace taper::llm
