// GPT-2: learned positions, and weights that are stored (in, out). A. Radford and others, "Language
// models are unsupervised multitask learners", 2019.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"

namespace taper::llm {
namespace {

Linear::Stored stored(const Weights& weights) {
  return weights.is_gguf() ? Linear::Stored::out_in : Linear::Stored::in_out;
}

class Gpt2Layer : public DecoderLayer {
 public:
  Gpt2Layer(const Config& c, const Weights& weights, int64_t layer)
      : attention_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        attention(c, weights["attention"], layer,
                  {.projections = Projections::joint, .stored = stored(weights)}),
        mlp_norm(weights["mlp_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        mlp(c, weights["mlp"], stored(weights)) {
    set_names();
  }

  Norm attention_norm;
  Attention attention;
  Norm mlp_norm;
  PlainMlp mlp;
  TAPER_LAYER(attention_norm, attention, mlp_norm, mlp)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor x = input + attention(attention_norm(input), step);
    return x + mlp(mlp_norm(x));
  }
};

}  // namespace

const Family gpt2 = {{"gpt2"}, Family::FinalNorm::layer, make<Gpt2Layer>};

}  // namespace taper::llm
