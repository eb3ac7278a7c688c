#include <algorithm>

#include "taper/exporter/llm/config_parts.h"

namespace taper::llm {
namespace {

/// Some families name a window, and say apart from it whether there is one.
bool has_optional_window(const Config& c) {
  return c.is({"qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3"});
}

/// In spite of its name, `no_rope_layers` has 1 for layers with a rotary embedding.
bool is_turned_by_list(const Keys& keys, int64_t layer) {
  const auto turned = keys.list<int64_t>({"no_rope_layers"});
  if (turned.empty()) return (layer + 1) % keys.positive({"no_rope_layer_interval"}, 4) != 0;
  return layer < static_cast<int64_t>(turned.size()) && turned[static_cast<size_t>(layer)] != 0;
}

/// Which layers see only a window, where no list says so.
bool is_windowed_by_rule(const Keys& keys, const Config& c, int64_t layer) {
  if (c.is({"gemma2"})) return layer % 2 == 0;
  if (c.is({"gemma3_text"}))
    return (layer + 1) % keys.positive({"sliding_window_pattern", "_sliding_window_pattern"}, 6) !=
           0;
  if (c.is({"cohere2", "olmo3", "exaone4"}))
    return (layer + 1) % keys.positive({"sliding_window_pattern"}, 4) != 0;
  if (c.is({"gpt_oss"})) return layer % 2 == 0;
  if (c.is({"llama4_text"})) return is_turned_by_list(keys, layer);
  if (has_optional_window(c)) return layer >= keys.integer({"max_window_layers"}, c.layers);
  return true;
}

/// Where some layers of Cohere 2 and EXAONE 4 see a window, the others know no positions.
bool is_turned(const Keys& keys, const Config& c, int64_t layer) {
  const bool windowed = c.windowed[static_cast<size_t>(layer)];
  if (c.is({"cohere2"})) return windowed;
  if (c.is({"exaone4"})) return windowed || c.window == 0;
  return !c.is({"smollm3", "llama4_text"}) || is_turned_by_list(keys, layer);
}

bool is_sparse(const Keys& keys, const Config& c, int64_t layer) {
  if (c.experts == 0) return false;
  if (const auto sparse = keys.list<int64_t>({"moe_layers"}); !sparse.empty())
    return std::ranges::find(sparse, layer) != sparse.end();
  const auto dense = keys.list<int64_t>({"mlp_only_layers"});
  const int64_t step = keys.positive({"decoder_sparse_step", "interleave_moe_layer_step"}, 1);
  return std::ranges::find(dense, layer) == dense.end() && (layer + 1) % step == 0;
}

}  // namespace

void read_layers(const Keys& keys, Config& c) {
  c.window = keys.integer({"sliding_window", "attention_chunk_size"}, 0);
  c.window_jumps = c.is({"llama4_text"});
  if (has_optional_window(c) && !keys.flag({"use_sliding_window"}, false)) c.window = 0;
  const auto types = keys.list<std::string>({"layer_types"});
  if (!types.empty() && static_cast<int64_t>(types.size()) != c.layers)
    throw ExportError("config: layer_types has " + std::to_string(types.size()) + " entries for " +
                      std::to_string(c.layers) + " layers");
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string type = types.empty() ? "" : types[static_cast<size_t>(i)];
    const bool windowed = type == (c.window_jumps ? "chunked_attention" : "sliding_attention");
    if (!type.empty() && type != "full_attention" && !windowed && type != "conv")
      throw ExportError("config: layers of type " + type + " are not supported");
    c.windowed.push_back(types.empty() ? is_windowed_by_rule(keys, c, i) : windowed);
    c.turned.push_back(is_turned(keys, c, i));
    c.convolutional.push_back(type == "conv");
    c.sparse.push_back(is_sparse(keys, c, i));
  }
}

}  // namespace taper::llm
