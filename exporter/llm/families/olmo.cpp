// OLMo 2 and 3: norms stand behind attention and MLP, and queries and keys are normalised over all
// heads. Most layers of OLMo 3 see a window. "2 OLMo 2 Furious", arXiv:2501.00656. EXAONE 4 differs
// in norms of each head, and in layers without positions. arXiv:2507.11407.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"

namespace taper::llm {
namespace {

AttentionOptions::QkNorm qk_norm(const Config& c) {
  using enum AttentionOptions::QkNorm;
  return c.family == "exaone4" ? per_head : all_heads;
}

class OlmoLayer : public DecoderLayer {
 public:
  OlmoLayer(const Config& c, const Weights& weights, int64_t layer)
      : attention(c, weights["attention"], layer, {.qk_norm = qk_norm(c)}),
        attention_norm(weights["attention_post_norm"], {c.hidden}, c.norm_eps, Norm::Kind::rms),
        mlp(c, weights["mlp"]),
        mlp_norm(weights["mlp_post_norm"], {c.hidden}, c.norm_eps, Norm::Kind::rms) {
    set_names();
  }

  Attention attention;
  Norm attention_norm;
  GatedMlp mlp;
  Norm mlp_norm;
  TAPER_LAYER(attention, attention_norm, mlp, mlp_norm)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor x = input + attention_norm(attention(input, step));
    return x + mlp_norm(mlp(x));
  }
};

}  // namespace

const Family olmo = {{"olmo2", "olmo3", "exaone4"}, Family::FinalNorm::rms, make<OlmoLayer>};

}  // namespace taper::llm
