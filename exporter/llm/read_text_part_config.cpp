// Configurations of models that see images, where the text alone is asked for.
#include <algorithm>

#include "taper/exporter/llm/config_keys.h"
#include "taper/exporter/llm/read_config.h"

namespace taper::llm {
namespace {

using nlohmann::json;

/// What published files of Gemma 3 leave out.
json gemma3_defaults() {
  return {{"vocab_size", 262208},        {"num_attention_heads", 8},
          {"num_key_value_heads", 4},    {"head_dim", 256},
          {"rms_norm_eps", 1e-6},        {"rope_theta", 1e6},
          {"rope_local_base_freq", 1e4}, {"query_pre_attn_scalar", 256},
          {"sliding_window", 4096},      {"max_position_embeddings", 131072}};
}

}  // namespace

bool has_text_part(const json& file) {
  const std::string type = Keys(file).text({"model_type"}, "");
  return type == "gemma3" || type == "llama4" || type == "mistral3";
}

Config read_text_part_config(const json& file) {
  const Keys keys(file);
  json text = keys.text({"model_type"}, "") == "gemma3" ? gemma3_defaults() : json::object();
  text.update(json_part(file, "text_config"));
  if (const json* tied = keys.find({"tie_word_embeddings"})) text["tie_word_embeddings"] = *tied;
  return read_config(text);
}

}  // namespace taper::llm
