// BLOOM: positions by ALiBi alone, and a norm behind the embedding. "BLOOM", arXiv:2211.05100.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"

namespace taper::llm {
namespace {

class BloomLayer : public DecoderLayer {
 public:
  BloomLayer(const Config& c, const Weights& weights, int64_t layer)
      : attention_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        attention(c, weights["attention"], layer,
                  {.projections = Projections::by_group, .alibi = true}),
        mlp_norm(weights["mlp_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        mlp(c, weights["mlp"]),
        residual_after_norm_(c.residual_after_norm) {
    set_names();
  }

  Norm attention_norm;
  Attention attention;
  Norm mlp_norm;
  PlainMlp mlp;
  TAPER_LAYER(attention_norm, attention, mlp_norm, mlp)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor normed = attention_norm(input);
    const Tensor x = residual(normed, input) + attention(normed, step);
    const Tensor y = mlp_norm(x);
    return residual(y, x) + mlp(y);
  }

 private:
  const Tensor& residual(const Tensor& normed, const Tensor& plain) const {
    return residual_after_norm_ ? normed : plain;
  }
  bool residual_after_norm_;
};

}  // namespace

const Family bloom = {{"bloom"}, Family::FinalNorm::layer, make<BloomLayer>};

}  // namespace taper::llm
