// Phi 1 to 2: attention and a plain MLP read the same norm; the rotary embedding turns a part of
// each head. S. Gunasekar and others, "Textbooks are all you need", arXiv:2306.11644.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"

namespace taper::llm {
namespace {

class PhiLayer : public DecoderLayer {
 public:
  PhiLayer(const Config& c, const Weights& weights, int64_t layer)
      : norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        attention(c, weights["attention"], layer),
        mlp(c, weights["mlp"]) {
    set_names();
  }

  Norm norm;
  Attention attention;
  PlainMlp mlp;
  TAPER_LAYER(norm, attention, mlp)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor x = norm(input);
    return attention(x, step) + mlp(x) + input;
  }
};

}  // namespace

const Family phi = {{"phi"}, Family::FinalNorm::layer, make<PhiLayer>};

}  // namespace taper::llm
