// GLM-4 of 2025: as Llama, with norms behind attention and MLP, too. Its rotary embedding turns
// neighbours in the first half of a head. The older GLM-4 is a member of the Llama family.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"

namespace taper::llm {
namespace {

class GlmLayer : public DecoderLayer {
 public:
  GlmLayer(const Config& c, const Weights& weights, int64_t layer)
      : attention_norm(norm(c, weights["attention_norm"])),
        attention(c, weights["attention"], layer),
        attention_post_norm(norm(c, weights["attention_post_norm"])),
        mlp_norm(norm(c, weights["mlp_norm"])),
        mlp(c, weights["mlp"]),
        mlp_post_norm(norm(c, weights["mlp_post_norm"])) {
    set_names();
  }

  Norm attention_norm;
  Attention attention;
  Norm attention_post_norm, mlp_norm;
  JointGatedMlp mlp;
  Norm mlp_post_norm;
  TAPER_LAYER(attention_norm, attention, attention_post_norm, mlp_norm, mlp, mlp_post_norm)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor x = input + attention_post_norm(attention(attention_norm(input), step));
    return x + mlp_post_norm(mlp(mlp_norm(x)));
  }

 private:
  static Norm norm(const Config& c, const Weights& weights) {
    return {weights, {c.hidden}, c.norm_eps, Norm::Kind::rms};
  }
};

}  // namespace

const Family glm = {{"glm4"}, Family::FinalNorm::rms, make<GlmLayer>};

}  // namespace taper::llm
