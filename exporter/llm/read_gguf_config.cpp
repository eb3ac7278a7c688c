#include <cmath>
#include <map>

#include "taper/exporter/base/error.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/read_config.h"

namespace taper::llm {
namespace {

/// Reads "<architecture>.<key>".
class Metadata {
 public:
  Metadata(const gguf::Content& content, std::string architecture)
      : content_(content), prefix_(std::move(architecture) + ".") {}

  int64_t integer(const char* key) const {
    const auto value = content_.integer(prefix_ + key);
    if (!value) throw ExportError("metadata " + prefix_ + key + " is missing");
    return *value;
  }
  int64_t integer(const char* key, int64_t otherwise) const {
    return content_.integer(prefix_ + key).value_or(otherwise);
  }
  double number(const char* key, double otherwise) const {
    return content_.number(prefix_ + key).value_or(otherwise);
  }
  std::string text(const char* key, const char* otherwise) const {
    return std::string(content_.text(prefix_ + key).value_or(otherwise));
  }

 private:
  const gguf::Content& content_;
  const std::string prefix_;
};

/// The families' names in config.json, which the rest of the code uses.
const std::map<std::string, std::string, std::less<>> families = {
    {"llama", "llama"},
    {"qwen2", "qwen2"},
    {"qwen3", "qwen3"},
    {"gemma", "gemma"},
    {"gemma2", "gemma2"},
    {"gemma3", "gemma3_text"},
    {"phi3", "phi3"},
    {"olmo2", "olmo2"},
    {"granite", "granite"},
    {"smollm3", "smollm3"},
    {"starcoder2", "starcoder2"},
    {"command-r", "cohere"},
    {"cohere2", "cohere2"},
    {"glm4", "glm4"},
    {"ernie4_5", "ernie4_5"},
    {"qwen2moe", "qwen2_moe"},
    {"qwen3moe", "qwen3_moe"},
    {"gpt-oss", "gpt_oss"},
    {"rwkv6", "rwkv6"},
    {"rwkv7", "rwkv7"},
};

const std::string& family_of(const std::string& architecture) {
  const auto family = families.find(architecture);
  if (family != families.end()) return family->second;
  std::string known;
  for (const auto& [name, of] : families) known += (known.empty() ? "" : ", ") + name;
  throw ExportError("GGUF models of architecture \"" + architecture +
                    "\" are not supported; these are: " + known);
}

void read_rotary(const Metadata& data, const gguf::Content& content, Config& c) {
  RotaryScaling s;
  s.theta = data.number("rope.freq_base", 10000);
  const std::string type = data.text("rope.scaling.type", "none");
  if (type == "linear" || type == "yarn")
    s.type = type;
  else if (type != "none" && type != "longrope")
    throw ExportError("metadata: rope.scaling.type " + type + " is not supported");
  s.factor = data.number("rope.scaling.factor", 1);
  s.original_context = data.integer("rope.scaling.original_context_length", c.context);
  s.truncate = !c.is({"gpt_oss"});
  // in some of these families pairs stand so anyway, in the others llama.cpp's converter moves them
  const bool interleaved =
      c.is({"llama", "granite", "smollm3", "cohere", "cohere2", "glm4", "ernie4_5"});
  c.rotary = make_rotary(s, data.integer("rope.dimension_count", c.head_dim), interleaved);
  if (content.tensors.contains("rope_factors_long.weight"))
    throw ExportError("rope_factors_long.weight: LongRoPE in GGUF files is not supported yet");
  if (c.family == "gemma3_text") {
    RotaryScaling local;
    c.local_rotary = make_rotary(local, c.rotary.dims, false);
  }
}

bool is_windowed(const Config& c, int64_t layer) {
  if (c.family == "gemma2") return layer % 2 == 0;
  if (c.family == "gemma3_text") return (layer + 1) % 6 != 0;
  if (c.is({"cohere2"})) return (layer + 1) % 4 != 0;
  if (c.is({"gpt_oss"})) return layer % 2 == 0;
  return true;
}

bool is_turned(const Config& c, int64_t layer) {
  if (c.is({"cohere2"})) return is_windowed(c, layer);
  return !c.is({"smollm3"}) || (layer + 1) % 4 != 0;
}

/// What the metadata do not say follows from the family.
void read_experts(const Metadata& data, Config& c) {
  c.experts = data.integer("expert_count", 0);
  if (c.experts == 0) return;
  c.experts_per_token = data.integer("expert_used_count");
  c.expert_mlp = data.integer("expert_feed_forward_length", c.mlp);
  c.normalizes_experts = !c.is({"qwen2_moe"});
  if (c.is({"qwen2_moe"})) c.shared_mlp = data.integer("expert_shared_feed_forward_length");
  if (c.is({"gpt_oss"})) c.gate_limit = 7, c.gate_slope = 1.702;
}

/// The metadata of RWKV say nothing of attention. The size of its states does not depend on the
/// context.
void read_rwkv(const Metadata& data, Config& c) {
  c.head_dim = data.integer("wkv.head_size");
  if (c.head_dim < 1 || c.hidden % c.head_dim != 0)
    throw ExportError("metadata: wkv.head_size " + std::to_string(c.head_dim) +
                      " does not divide embedding_length " + std::to_string(c.hidden));
  if (data.integer("token_shift_count", 2) != 2)
    throw ExportError("metadata: token_shift_count must be 2");
  c.heads = c.kv_heads = c.hidden / c.head_dim, c.inner = c.hidden;
  c.capacity = c.context;
  if (c.is({"rwkv6"})) {
    c.mix_rank = data.integer("time_mix_extra_dim");
    c.decay_rank = data.integer("time_decay_extra_dim");
    c.halved_every = data.integer("rescale_every_n_layers", 0);
  } else {
    c.decay_rank = data.integer("attention.decay_lora_rank");
    c.rate_rank = data.integer("attention.iclr_lora_rank");
    c.value_rank = data.integer("attention.value_residual_mix_lora_rank");
    c.gate_rank = data.integer("attention.gate_lora_rank");
  }
  for (const int64_t rank : {c.mix_rank, c.decay_rank, c.rate_rank, c.value_rank, c.gate_rank})
    if (rank < 0 || rank >= int64_t{1} << 31)
      throw ExportError("metadata: a rank of RWKV is " + std::to_string(rank) +
                        ", not in [0, 2^31)");
}

}  // namespace

Config read_config(const gguf::Content& content) {
  const std::string architecture(content.text("general.architecture").value_or(""));
  const Metadata data(content, architecture);
  Config c;
  c.family = family_of(architecture), c.is_gguf = true;
  (void)family_named(c.family);
  c.layers = data.integer("block_count"), c.hidden = data.integer("embedding_length");
  c.mlp = data.integer("feed_forward_length"), c.context = data.integer("context_length");
  const auto embedding = content.tensors.find("token_embd.weight");
  if (embedding == content.tensors.end() || embedding->second.sizes.size() != 2)
    throw ExportError("the tensor token_embd.weight is missing");
  c.vocabulary = embedding->second.sizes[0];
  c.tied = !content.tensors.contains("output.weight");
  c.norm_eps = data.number("attention.layer_norm_rms_epsilon",
                           data.number("attention.layer_norm_epsilon", 1e-5));
  if (c.is({"rwkv6", "rwkv7"})) {
    read_rwkv(data, c);
    check(c);
    return c;
  }
  c.heads = data.integer("attention.head_count");
  if (c.heads < 1) throw ExportError("metadata: attention.head_count must be positive");
  c.kv_heads = data.integer("attention.head_count_kv", c.heads);
  c.head_dim = data.integer("attention.key_length", c.hidden / c.heads);
  const bool is_gemma = c.family.starts_with("gemma");
  c.activation = is_gemma || c.is({"starcoder2"}) ? "gelu_tanh" : "silu";
  c.qk_norm = content.tensors.contains("blk.0.attn_q_norm.weight");
  c.attention_scale =
      data.number("attention.scale", 1 / std::sqrt(static_cast<double>(c.head_dim)));
  c.attention_softcap = data.number("attn_logit_softcapping", 0);
  c.logit_softcap = data.number("final_logit_softcapping", 0);
  c.embedding_scale =
      is_gemma ? std::sqrt(static_cast<double>(c.hidden)) : data.number("embedding_scale", 1);
  c.residual_scale = data.number("residual_scale", 1);
  c.logit_scale = data.number("logit_scale", 1);
  if (!c.is({"cohere", "cohere2"})) c.logit_scale = 1 / c.logit_scale;
  c.window = data.integer("attention.sliding_window", 0);
  read_experts(data, c);
  read_rotary(data, content, c);
  for (int64_t i = 0; i < c.layers && i < 10000; ++i) {
    c.windowed.push_back(is_windowed(c, i)), c.turned.push_back(is_turned(c, i));
    c.convolutional.push_back(false), c.sparse.push_back(c.experts > 0);
  }
  c.capacity = c.context;
  check(c);
  return c;
}

}  // namespace taper::llm
