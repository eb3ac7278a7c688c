// Falcon: one projection for queries, keys and values, by groups; attention and MLP are parallel
// and read one norm or, in the newer form, one each. E. Almazrouei and others, arXiv:2311.16867.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"

namespace taper::llm {
namespace {

class FalconLayer : public DecoderLayer {
 public:
  FalconLayer(const Config& c, const Weights& weights, int64_t layer)
      : attention_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        attention(c, weights["attention"], layer, {.projections = Projections::by_group}),
        mlp(c, weights["mlp"]),
        parallel_(c.parallel) {
    if (c.two_norms || !c.parallel)
      mlp_norm = std::make_unique<Norm>(weights["mlp_norm"], Ints{c.hidden}, c.norm_eps,
                                        Norm::Kind::layer);
    set_names();
  }

  Norm attention_norm;
  Attention attention;
  std::unique_ptr<Norm> mlp_norm;
  PlainMlp mlp;
  TAPER_LAYER(attention_norm, attention, mlp_norm, mlp)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor x = attention_norm(input), attended = attention(x, step);
    if (!parallel_) {
      const Tensor y = input + attended;
      return y + mlp((*mlp_norm)(y));
    }
    return input + attended + mlp(mlp_norm ? (*mlp_norm)(input) : x);
  }

 private:
  bool parallel_;
};

}  // namespace

const Family falcon = {{"falcon"}, Family::FinalNorm::layer, make<FalconLayer>};

}  // namespace taper::llm
