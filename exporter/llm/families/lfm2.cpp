// LFM2: most layers hold a gated short convolution, the others attention. "LFM2 technical report",
// Liquid AI, arXiv:2511.23404.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/short_convolution.h"

namespace taper::llm {
namespace {

/// out(c convolution(b x)), where b, c and x are projections of the input.
class GatedConvolution : public nn::Module {
 public:
  GatedConvolution(const Config& c, const Weights& weights)
      : in(weights["in"], c.hidden, 3 * c.hidden),
        convolution(c, weights["filter"], c.hidden),
        out(weights["out"], c.hidden, c.hidden) {
    set_names();
  }
  Linear in;
  ShortConvolution convolution;
  Linear out;
  TAPER_LAYER(in, convolution, out)

  Tensor forward(const Tensor& input, const Step& step) {
    const std::vector<Tensor> parts = eager::chunk(in(input), 3, -1);
    const Tensor &b = parts[0], &c = parts[1], &x = parts[2];
    return out(c * convolution.forward(b * x, step));
  }
};

class Lfm2Layer : public DecoderLayer {
 public:
  Lfm2Layer(const Config& c, const Weights& weights, int64_t layer)
      : mixer_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::rms),
        mlp_norm(weights["mlp_norm"], {c.hidden}, c.norm_eps, Norm::Kind::rms),
        mlp(c, weights["mlp"]) {
    if (c.convolutional[static_cast<size_t>(layer)])
      convolution = std::make_unique<GatedConvolution>(c, weights["convolution"]);
    else
      attention = std::make_unique<Attention>(
          c, weights["attention"], layer,
          AttentionOptions{.qk_norm = AttentionOptions::QkNorm::per_head});
    set_names();
  }

  Norm mixer_norm;
  std::unique_ptr<GatedConvolution> convolution;
  std::unique_ptr<Attention> attention;
  Norm mlp_norm;
  GatedMlp mlp;
  TAPER_LAYER(mixer_norm, convolution, attention, mlp_norm, mlp)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor normed = mixer_norm(input);
    const Tensor x =
        input + (convolution ? convolution->forward(normed, step) : (*attention)(normed, step));
    return x + mlp(mlp_norm(x));
  }
};

}  // namespace

const Family lfm2 = {{"lfm2"}, Family::FinalNorm::rms, make<Lfm2Layer>};

}  // namespace taper::llm
