#include "taper/exporter/llm/config_parts.h"

namespace taper::llm {
namespace {

using nlohmann::json;

/// The older spelling, as `rope_parameters` would be.
json old_rope_parameters(const Keys& keys) {
  const json* scaling = keys.find({"rope_scaling"});
  json rope = scaling != nullptr && scaling->is_object() ? *scaling : json::object();
  if (!rope.contains("rope_type") && rope.contains("type")) rope["rope_type"] = rope["type"];
  rope["rope_theta"] = keys.number({"rope_theta", "rotary_emb_base"}, 10000);
  return rope;
}

}  // namespace

RotaryScaling read_rotary_scaling(const json& rope, const Keys& config, const Config& c) {
  const Keys keys(rope);
  RotaryScaling s;
  s.type = keys.text({"rope_type", "type"}, "default");
  s.theta = keys.number({"rope_theta"}, 10000);
  s.original_context = keys.integer(
      {"original_max_position_embeddings"},
      config.integer({"original_max_position_embeddings"}, s.type == "longrope" ? 0 : c.context));
  const double stretch = s.original_context > 0 ? static_cast<double>(c.context) /
                                                      static_cast<double>(s.original_context)
                                                : 1;
  s.factor = keys.number({"factor"}, s.type == "longrope" ? stretch : 1);
  s.low_freq_factor = keys.number({"low_freq_factor"}, 1);
  s.high_freq_factor = keys.number({"high_freq_factor"}, 4);
  s.beta_fast = keys.number({"beta_fast"}, 32), s.beta_slow = keys.number({"beta_slow"}, 1);
  s.mscale = keys.number({"mscale"}, 0), s.mscale_all_dim = keys.number({"mscale_all_dim"}, 0);
  s.truncate = keys.flag({"truncate"}, true);
  s.attention_factor = keys.number({"attention_factor"}, 0);
  s.short_factor = keys.list<double>({"short_factor"});
  s.long_factor = keys.list<double>({"long_factor"});
  return s;
}

void read_rotary(const Keys& keys, Config& c) {
  if (c.is({"gpt2", "gpt_bigcode", "opt", "bloom", "mamba", "mamba2", "rwkv"})) return;
  const json* given = keys.find({"rope_parameters"});
  const json rope = given != nullptr ? *given : old_rope_parameters(keys);
  const bool by_layer = rope.contains("full_attention");
  const json& full = by_layer ? rope["full_attention"] : rope;
  const double part = Keys(full).number(
      {"partial_rotary_factor"},
      keys.number({"partial_rotary_factor", "rotary_pct"}, c.is({"glm", "glm4"}) ? 0.5 : 1));
  const auto dims = static_cast<int64_t>(static_cast<double>(c.head_dim) * part);
  const bool interleaved = c.is({"cohere", "cohere2", "glm", "glm4", "llama4_text", "ernie4_5"});
  c.rotary = make_rotary(read_rotary_scaling(full, keys, c), dims, interleaved);
  if (by_layer && rope.contains("sliding_attention")) {
    c.local_rotary =
        make_rotary(read_rotary_scaling(rope["sliding_attention"], keys, c), dims, interleaved);
  } else if (const auto theta = keys.number_if({"rope_local_base_freq"})) {
    RotaryScaling local;
    local.theta = *theta;
    c.local_rotary = make_rotary(local, dims, interleaved);
  } else if (c.is({"olmo3"})) {
    RotaryScaling local;
    local.theta = read_rotary_scaling(full, keys, c).theta;
    c.local_rotary = make_rotary(local, dims, interleaved);
  }
}

}  // namespace taper::llm
