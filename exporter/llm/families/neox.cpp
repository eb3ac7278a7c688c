// GPT-NeoX and Pythia: attention and MLP have a norm each and, usually, the same input. S. Black
// and others, "GPT-NeoX-20B", arXiv:2204.06745.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"

namespace taper::llm {
namespace {

class NeoxLayer : public DecoderLayer {
 public:
  NeoxLayer(const Config& c, const Weights& weights, int64_t layer)
      : attention_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        attention(c, weights["attention"], layer, {.projections = Projections::by_group}),
        mlp_norm(weights["mlp_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        mlp(c, weights["mlp"]),
        parallel_(c.parallel) {
    set_names();
  }

  Norm attention_norm;
  Attention attention;
  Norm mlp_norm;
  PlainMlp mlp;
  TAPER_LAYER(attention_norm, attention, mlp_norm, mlp)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor attended = input + attention(attention_norm(input), step);
    return attended + mlp(mlp_norm(parallel_ ? input : attended));
  }

 private:
  bool parallel_;
};

}  // namespace

const Family neox = {{"gpt_neox"}, Family::FinalNorm::layer, make<NeoxLayer>};

}  // namespace taper::llm
