#include <algorithm>
#include <cmath>

#include "taper/exporter/llm/config_keys.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/read_config.h"

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

RotaryScaling scaling_of(const json& rope, const Keys& config, const Config& c) {
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
  c.rotary = make_rotary(scaling_of(full, keys, c), dims, interleaved);
  if (by_layer && rope.contains("sliding_attention")) {
    c.local_rotary = make_rotary(scaling_of(rope["sliding_attention"], keys, c), dims, interleaved);
  } else if (const auto theta = keys.number_if({"rope_local_base_freq"})) {
    RotaryScaling local;
    local.theta = *theta;
    c.local_rotary = make_rotary(local, dims, interleaved);
  } else if (c.is({"olmo3"})) {
    RotaryScaling local;
    local.theta = scaling_of(full, keys, c).theta;
    c.local_rotary = make_rotary(local, dims, interleaved);
  }
}

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

void read_experts(const Keys& keys, Config& c) {
  c.experts = keys.integer({"num_local_experts", "num_experts"}, 0);
  if (c.experts == 0) return;
  c.experts_per_token = keys.integer({"num_experts_per_tok"});
  c.expert_mlp = keys.integer({"moe_intermediate_size"}, c.mlp);
  c.normalizes_experts = c.is({"mixtral", "gpt_oss"}) || keys.flag({"norm_topk_prob"}, false);
  if (c.is({"qwen2_moe"})) c.shared_mlp = keys.integer({"shared_expert_intermediate_size"});
  if (c.is({"llama4_text"})) {
    c.scales_expert_input = true;
    c.expert_mlp = c.shared_mlp = c.mlp;
    c.mlp = keys.integer({"intermediate_size_mlp"});
  }
  if (c.is({"gpt_oss"})) {
    c.gate_limit = keys.positive_number({"swiglu_limit"}, 7);
    c.gate_slope = keys.number({"swiglu_alpha"}, 1.702);
  }
}

void read_scales(const Keys& keys, Config& c) {
  const double per_head = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(c.head_dim, 1)));
  c.attention_scale = per_head;
  if (const auto q = keys.number_if({"query_pre_attn_scalar"}))
    c.attention_scale = 1 / std::sqrt(*q);
  if (const auto m = keys.number_if({"attention_multiplier"})) c.attention_scale = *m;
  if (!keys.flag({"scale_attn_weights"}, true)) c.attention_scale = 1;
  c.scales_by_layer = keys.flag({"scale_attn_by_inverse_layer_idx"}, false);
  c.attention_softcap = keys.number({"attn_logit_softcapping"}, 0);
  c.logit_softcap = keys.number({"final_logit_softcapping"}, 0);
  c.residual_scale = keys.number({"residual_multiplier"}, 1);
  c.embedding_scale = keys.number({"embedding_multiplier"}, 1);
  if (c.is({"gemma", "gemma2", "gemma3_text"}))
    c.embedding_scale = std::sqrt(static_cast<double>(c.hidden));
  const double usual = c.is({"cohere", "cohere2"}) ? 0.0625 : 1;
  c.logit_scale = keys.number({"logit_scale"}, usual) / keys.number({"logits_scaling"}, 1);
  if (c.is({"llama4_text"}) && keys.flag({"attn_temperature_tuning"}, true)) {
    c.temperature_scale = keys.number({"attn_scale"}, 0.1);
    c.temperature_floor = keys.positive_number({"floor_scale"}, 8192);
  }
}

/// LFM2's configuration states the size before this rule.
void adjust_mlp(const Keys& keys, Config& c) {
  const int64_t multiple = std::max<int64_t>(keys.integer({"block_multiple_of"}, 256), 1);
  const double factor = keys.number({"block_ffn_dim_multiplier"}, 1);
  const auto wanted = static_cast<int64_t>(factor * static_cast<double>(2 * c.mlp / 3));
  c.mlp = (wanted + multiple - 1) / multiple * multiple;
}

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

/// The smallest OPT but one has norms behind its parts and a narrower embedding.
void read_opt(const Keys& keys, Config& c) {
  c.position_offset = 2;
  if (!keys.flag({"do_layer_norm_before"}, true))
    throw ExportError(
        "config: do_layer_norm_before is false, and norms behind attention are not "
        "supported here");
  if (keys.integer({"word_embed_proj_dim"}, c.hidden) != c.hidden)
    throw ExportError(
        "config: word_embed_proj_dim differs from hidden_size, which is not "
        "supported");
  keys.refuse({"_remove_final_layer_norm"}, "a model without its last norm");
}

void read_flags(const Keys& keys, Config& c) {
  c.parallel = keys.flag({"use_parallel_residual", "parallel_attn"}, c.is({"gpt_neox", "falcon"}));
  c.two_norms = keys.flag({"new_decoder_architecture"}, false) &&
                keys.integer({"num_ln_in_parallel_attn"}, 2) == 2;
  if (c.two_norms) c.parallel = true;
  c.residual_after_norm = keys.flag({"apply_residual_connection_post_layernorm"}, false);
  c.qk_norm = keys.flag({"use_qk_norm", "qk_layernorm"}, false);
  c.unit_heads = c.is({"llama4_text"}) && keys.flag({"use_qk_norm"}, true);
  if (c.is({"opt"})) read_opt(keys, c);
  keys.refuse({"alibi"}, "Falcon with ALiBi");
  keys.refuse({"use_bidirectional_attention"}, "attention to later tokens");
  keys.refuse({"add_cross_attention"}, "cross attention");
  if (c.is({"olmoe"}) && keys.number_if({"clip_qkv"}))
    throw ExportError("config: clip_qkv is given, and clipped queries are not supported");
  if (c.is({"stablelm", "phi"})) keys.refuse({"qk_layernorm"}, "a norm of queries and keys here");
}

/// Its files may write the bound of time steps as Infinity, which is no number in JSON.
double bound(const json& limits, size_t place, double otherwise) {
  const bool given = limits.is_array() && limits.size() > place && limits[place].is_number();
  return given ? limits[place].get<double>() : otherwise;
}

void read_mamba2(const Keys& keys, Config& c) {
  c.state = keys.positive({"state_size"}, 128), c.groups = keys.positive({"n_groups"}, 8);
  c.heads = c.kv_heads = keys.positive({"num_heads"}, 128);
  c.head_dim = keys.positive({"head_dim"}, 64);
  c.inner = c.heads * c.head_dim;
  const json* limits = keys.find({"time_step_limit"});
  const json all = limits != nullptr ? *limits : json::array();
  c.least_step = bound(all, 0, 0), c.most_step = bound(all, 1, INFINITY);
  if (c.inner != keys.positive({"expand"}, 2) * c.hidden)
    throw ExportError("config: num_heads times head_dim must be expand times hidden_size");
  if (c.heads % c.groups != 0) throw ExportError("config: n_groups must divide num_heads");
}

void read_state_space(const Keys& keys, Config& c) {
  c.kernel = keys.integer({"conv_kernel", "conv_L_cache"}, 0);
  if (c.is({"mamba2"})) read_mamba2(keys, c);
  if (c.is({"rwkv"})) c.inner = c.hidden;
  if (!c.is({"mamba"})) return;
  c.inner = keys.integer({"intermediate_size"}, keys.positive({"expand"}, 2) * c.hidden);
  c.state = keys.integer({"state_size"});
  c.step_rank = keys.integer({"time_step_rank"}, (c.hidden + 15) / 16);
}

bool is_tied_by_default(const Config& c) {
  return c.is({"gemma", "gemma2", "gemma3_text", "gpt2", "gpt_bigcode", "bloom", "falcon", "cohere",
               "cohere2", "ernie4_5", "opt", "smollm3", "starcoder2", "mamba", "lfm2"});
}

/// Older files have a key for each rotary embedding.
void read_modernbert_rotary(const Keys& keys, Config& c) {
  const auto rotary = [&](const char* layers, const char* old_key, double usual) {
    RotaryScaling s;
    s.theta = keys.number({old_key}, usual);
    if (const json* given = keys.find({"rope_parameters"});
        given != nullptr && given->contains(layers))
      s = scaling_of((*given)[layers], keys, c);
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

std::string activation_named(const std::string& name) {
  if (name == "silu" || name == "swish" || name == "swiglu") return "silu";
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return "gelu_tanh";
  if (name == "gelu" || name == "gelu_python") return "gelu";
  if (name == "relu" || name == "quick_gelu") return name;
  throw ExportError(
      "config: the activation \"" + name +
      "\" is unknown; known are silu, gelu, gelu_new, gelu_pytorch_tanh, relu, quick_gelu");
}

Config read_config(const json& file) {
  const Keys keys(file);
  Config c;
  c.family = keys.text({"model_type"}, "");
  (void)family_named(c.family);
  read_sizes(keys, c);
  check(c);  // what follows computes with the sizes
  c.norm_eps = keys.number(
      {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon"}, 1e-5);
  const char* usual = c.is({"gemma", "gemma2", "gemma3_text", "bloom", "gpt_bigcode", "starcoder2"})
                          ? "gelu_pytorch_tanh"
                      : c.is({"opt"}) ? "relu"
                                      : "silu";
  // Gemma's code reads hidden_activation, whatever hidden_act says
  c.activation = activation_named(
      keys.text({"hidden_activation", "hidden_act", "activation_function", "activation"}, usual));
  c.tied = keys.flag({"tie_word_embeddings"}, is_tied_by_default(c));
  read_flags(keys, c);
  read_rotary(keys, c);
  read_experts(keys, c);
  read_layers(keys, c);
  read_scales(keys, c);
  read_state_space(keys, c);
  c.capacity = c.context;
  check(c);
  return c;
}

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

void check(const Config& c) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw ExportError("config: " + what);
  };
  constexpr int64_t most = int64_t{1} << 31;
  for (const int64_t size : {c.vocabulary, c.hidden, c.layers, c.mlp, c.context})
    require(size > 0 && size < most, "a size is " + std::to_string(size) + ", not in [1, 2^31)");
  require(c.layers <= 10000, std::to_string(c.layers) + " layers are too many");
  for (const int64_t size : {c.experts, c.expert_mlp, c.shared_mlp})
    require(size >= 0 && size < most, "a size of experts is out of range");
  require(c.window >= 0 && c.window < most, "sliding_window is out of range");
  if (c.heads == 0) return;
  require(c.heads > 0 && c.heads < most && c.head_dim > 0 && c.head_dim < most,
          "the number or size of heads is out of range");
  require(c.kv_heads > 0 && c.heads % c.kv_heads == 0,
          std::to_string(c.kv_heads) + " heads of keys do not divide " + std::to_string(c.heads));
  require(c.rotary.dims <= c.head_dim, "the rotary embedding turns more features than a head has");
  require(c.experts == 0 || (c.experts_per_token > 0 && c.experts_per_token <= c.experts),
          "num_experts_per_tok is out of range");
}

}  // namespace taper::llm
