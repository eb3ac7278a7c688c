#include <algorithm>
#include <cmath>

#include "taper/exporter/llm/config_keys.h"
#include "taper/exporter/llm/config_parts.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/read_config.h"

namespace taper::llm {
namespace {

using nlohmann::json;

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
  if (c.is({"rwkv6", "rwkv7"}))
    throw ExportError(
        "config: folders of RWKV 6 and 7 are not supported. Convert the folder with "
        "llama.cpp's convert_hf_to_gguf.py, and use the GGUF file");
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
  require(c.heads > 0 && c.heads < most && c.head_dim > 0 && c.head_dim <= most_head_features,
          std::to_string(c.heads) + " heads of " + std::to_string(c.head_dim) +
              " features are out of range; a head can have " + std::to_string(most_head_features));
  require(c.kv_heads > 0 && c.heads % c.kv_heads == 0,
          std::to_string(c.kv_heads) + " heads of keys do not divide " + std::to_string(c.heads));
  require(c.rotary.dims <= c.head_dim, "the rotary embedding turns more features than a head has");
  require(c.experts == 0 || (c.experts_per_token > 0 && c.experts_per_token <= c.experts),
          "num_experts_per_tok is out of range");
}

}  // namespace taper::llm
