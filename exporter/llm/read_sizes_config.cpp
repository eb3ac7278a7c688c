#include "taper/exporter/llm/config_parts.h"

namespace taper::llm {
namespace {

/// LFM2's configuration states the size before this rule.
void adjust_mlp(const Keys& keys, Config& c) {
  const int64_t multiple = std::max<int64_t>(keys.integer({"block_multiple_of"}, 256), 1);
  const double factor = keys.number({"block_ffn_dim_multiplier"}, 1);
  const auto wanted = static_cast<int64_t>(factor * static_cast<double>(2 * c.mlp / 3));
  c.mlp = (wanted + multiple - 1) / multiple * multiple;
}

}  // namespace

void read_sizes(const Keys& keys, Config& c) {
  c.vocabulary = keys.integer({"vocab_size"});
  c.hidden = keys.integer({"hidden_size", "n_embd", "n_embed", "d_model"});
  c.layers = keys.integer({"num_hidden_layers", "n_layer", "num_layers"});
  c.context = keys.integer({"max_position_embeddings", "n_positions", "context_length"}, 2048);
  c.mlp = keys.integer(
      {"intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "block_ff_dim"}, 4 * c.hidden);
  if (c.is({"mamba", "mamba2", "rwkv"})) return;
  if (c.is({"lfm2"}) && keys.flag({"block_auto_adjust_ff_dim"}, true)) adjust_mlp(keys, c);
  c.heads = keys.integer({"num_attention_heads", "n_head"});
  if (c.heads < 1) throw ExportError("config: num_attention_heads must be positive");
  c.kv_heads = keys.integer({"num_key_value_heads"}, c.heads);
  if (c.is({"gpt_bigcode"})) {
    c.qkv_by_group = !keys.flag({"multi_query"}, true);
    c.kv_heads = c.qkv_by_group ? c.heads : 1;
  }
  if (c.is({"falcon"})) {
    const bool grouped = keys.flag({"new_decoder_architecture"}, false);
    c.kv_heads = grouped                            ? keys.integer({"num_kv_heads"}, c.heads)
                 : keys.flag({"multi_query"}, true) ? 1
                                                    : c.heads;
  }
  c.head_dim = keys.integer({"head_dim"}, c.hidden / c.heads);
}

}  // namespace taper::llm
