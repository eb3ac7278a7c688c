// StableLM: as Llama with layer norms and a partial rotary embedding; some read one norm in
// parallel.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"

namespace taper::llm {
namespace {

class StableLmLayer : public DecoderLayer {
 public:
  StableLmLayer(const Config& c, const Weights& weights, int64_t layer)
      : attention_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        attention(c, weights["attention"], layer),
        mlp(c, weights["mlp"]) {
    if (!c.parallel)
      mlp_norm = std::make_unique<Norm>(weights["mlp_norm"], Ints{c.hidden}, c.norm_eps,
                                        Norm::Kind::layer);
    set_names();
  }

  Norm attention_norm;
  Attention attention;
  std::unique_ptr<Norm> mlp_norm;
  GatedMlp mlp;
  TAPER_LAYER(attention_norm, attention, mlp_norm, mlp)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor normed = attention_norm(input), x = input + attention(normed, step);
    return x + mlp(mlp_norm ? (*mlp_norm)(x) : normed);
  }
};

}  // namespace

const Family stablelm = {{"stablelm"}, Family::FinalNorm::layer, make<StableLmLayer>};

}  // namespace taper::llm
