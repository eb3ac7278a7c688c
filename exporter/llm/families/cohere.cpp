// Cohere's Command R: attention and MLP read the same norm, and norms have no bias. In Command A
// and R7B only the layers with a window turn positions.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"

namespace taper::llm {
namespace {

AttentionOptions cohere_attention(const Config& c) {
  AttentionOptions o;
  o.norm = Norm::Kind::layer;
  if (c.qk_norm) o.qk_norm = AttentionOptions::QkNorm::own_weights;
  return o;
}

class CohereLayer : public DecoderLayer {
 public:
  CohereLayer(const Config& c, const Weights& weights, int64_t layer)
      : norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        attention(c, weights["attention"], layer, cohere_attention(c)),
        mlp(c, weights["mlp"]) {
    set_names();
  }

  Norm norm;
  Attention attention;
  GatedMlp mlp;
  TAPER_LAYER(norm, attention, mlp)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor x = norm(input);
    return input + attention(x, step) + mlp(x);
  }
};

}  // namespace

const Family cohere = {{"cohere", "cohere2"}, Family::FinalNorm::layer, make<CohereLayer>};

}  // namespace taper::llm
