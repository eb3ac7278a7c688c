// Llama and its kin: norm, attention, norm, gated MLP. Mistral adds a window, Qwen biases or norms
// of queries and keys, Granite scales, Phi-3 and GLM joint projections, SmolLM3 layers without
// positions, gpt-oss sinks; Mixtral, Qwen-MoE, OLMoE, gpt-oss and Llama 4 have experts. H. Touvron
// and others, "LLaMA", arXiv:2302.13971.
#include "taper/exporter/llm/experts.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/pre_norm_layer.h"

namespace taper::llm {
namespace {

AttentionOptions options_of(const Config& c, const Weights& attention, int64_t layer) {
  AttentionOptions o;
  if (c.unit_heads && c.is_turned(layer)) o.qk_norm = AttentionOptions::QkNorm::unit;
  if (attention["qkv"].has()) o.projections = Projections::joint;
  if (attention["q_norm"].has())
    o.qk_norm = c.family == "olmoe" ? AttentionOptions::QkNorm::all_heads
                                    : AttentionOptions::QkNorm::per_head;
  return o;
}

std::unique_ptr<TokenBlock> make_mlp(const Config& c, const Weights& weights, int64_t layer) {
  if (c.sparse[static_cast<size_t>(layer)]) return make_experts(c, weights);
  if (!weights["mlp.gate"].has()) return std::make_unique<JointGatedMlp>(c, weights["mlp"]);
  return std::make_unique<GatedMlp>(c, weights["mlp"]);
}

std::unique_ptr<DecoderLayer> make_llama(const Config& c, const Weights& weights, int64_t layer) {
  return std::make_unique<PreNormLayer>(
      c, weights, layer,
      PreNormOptions{.attention = options_of(c, weights["attention"], layer),
                     .norm = Norm::Kind::rms,
                     .residual_scale = c.residual_scale},
      make_mlp(c, weights, layer));
}

}  // namespace

const Family llama = {{"llama", "llama4_text", "mistral", "mixtral", "smollm3", "qwen2",
                       "qwen2_moe", "qwen3", "qwen3_moe", "phi3", "granite", "glm", "gpt_oss",
                       "ernie4_5", "seed_oss", "ministral", "olmoe"},
                      Family::FinalNorm::rms,
                      make_llama};

}  // namespace taper::llm
