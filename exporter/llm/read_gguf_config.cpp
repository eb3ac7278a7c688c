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
    {"llama", "llama"}, {"qwen2", "qwen2"},   {"qwen3", "qwen3"},
    {"gemma", "gemma"}, {"gemma2", "gemma2"}, {"gemma3", "gemma3_text"},
    {"phi3", "phi3"},   {"olmo2", "olmo2"},   {"granite", "granite"},
};

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
  // llama.cpp's converter puts pairs of these families side by side
  const bool interleaved = c.family == "llama" || c.family == "granite";
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
  return true;
}

}  // namespace

Config read_config(const gguf::Content& content) {
  const std::string architecture(content.text("general.architecture").value_or(""));
  const auto family = families.find(architecture);
  if (family == families.end())
    throw ExportError("GGUF models of architecture \"" + architecture + "\" are not supported");
  const Metadata data(content, architecture);
  Config c;
  c.family = family->second, c.is_gguf = true;
  (void)family_named(c.family);
  c.layers = data.integer("block_count"), c.hidden = data.integer("embedding_length");
  c.mlp = data.integer("feed_forward_length"), c.context = data.integer("context_length");
  c.heads = data.integer("attention.head_count");
  if (c.heads < 1) throw ExportError("metadata: attention.head_count must be positive");
  c.kv_heads = data.integer("attention.head_count_kv", c.heads);
  c.head_dim = data.integer("attention.key_length", c.hidden / c.heads);
  const auto embedding = content.tensors.find("token_embd.weight");
  if (embedding == content.tensors.end() || embedding->second.sizes.size() != 2)
    throw ExportError("the tensor token_embd.weight is missing");
  c.vocabulary = embedding->second.sizes[0];
  c.tied = !content.tensors.contains("output.weight");
  c.norm_eps = data.number("attention.layer_norm_rms_epsilon",
                           data.number("attention.layer_norm_epsilon", 1e-5));
  const bool is_gemma = c.family.starts_with("gemma");
  c.activation = is_gemma ? "gelu_tanh" : "silu";
  c.attention_scale =
      data.number("attention.scale", 1 / std::sqrt(static_cast<double>(c.head_dim)));
  c.attention_softcap = data.number("attn_logit_softcapping", 0);
  c.logit_softcap = data.number("final_logit_softcapping", 0);
  c.embedding_scale =
      is_gemma ? std::sqrt(static_cast<double>(c.hidden)) : data.number("embedding_scale", 1);
  c.residual_scale = data.number("residual_scale", 1);
  c.logit_scale = 1 / data.number("logit_scale", 1);
  c.window = data.integer("attention.sliding_window", 0);
  if (data.integer("expert_count", 0) > 0)
    throw ExportError("experts in GGUF files are not supported yet");
  read_rotary(data, content, c);
  for (int64_t i = 0; i < c.layers && i < 10000; ++i) {
    c.windowed.push_back(is_windowed(c, i));
    c.convolutional.push_back(false), c.sparse.push_back(false);
  }
  c.capacity = c.context;
  check(c);
  return c;
}

}  // namespace taper::llm
