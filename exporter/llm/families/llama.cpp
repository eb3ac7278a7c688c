// Llama and its kin: norm, attention, norm, gated MLP. Mistral adds a window, Qwen biases or norms
// of queries and keys, Granite scales, Phi-3 and GLM joint projections, SmolLM3 layers without
// positions, gpt-oss sinks; Mixtral, Qwen-MoE, OLMoE, gpt-oss and Llama 4 have experts. H. Touvron
// and others, "LLaMA", arXiv:2302.13971.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/experts.h"
#include "taper/exporter/llm/families.h"

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

class LlamaLayer : public DecoderLayer {
 public:
  LlamaLayer(const Config& c, const Weights& weights, int64_t layer)
      : attention_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::rms),
        attention(c, weights["attention"], layer, options_of(c, weights["attention"], layer)),
        mlp_norm(weights["mlp_norm"], {c.hidden}, c.norm_eps, Norm::Kind::rms),
        mlp(make_mlp(c, weights, layer)),
        residual_scale_(c.residual_scale) {
    set_names();
  }

  Norm attention_norm;
  Attention attention;
  Norm mlp_norm;
  std::unique_ptr<TokenBlock> mlp;
  TAPER_LAYER(attention_norm, attention, mlp_norm, mlp)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor x = input + scaled(attention(attention_norm(input), step));
    return x + scaled((*mlp)(mlp_norm(x)));
  }

 private:
  Tensor scaled(const Tensor& x) const { return residual_scale_ == 1 ? x : x * residual_scale_; }
  double residual_scale_;
};

}  // namespace

const Family llama = {{"llama", "llama4_text", "mistral", "mixtral", "smollm3", "qwen2",
                       "qwen2_moe", "qwen3", "qwen3_moe", "phi3", "granite", "glm", "gpt_oss",
                       "ernie4_5", "seed_oss", "ministral", "olmoe"},
                      Family::FinalNorm::rms,
                      make<LlamaLayer>};

}  // namespace taper::llm
