// Whisper: two convolutions turn frames of sound into positions, and an encoder and a decoder with
// layer norms follow. A. Radford and others, "Robust speech recognition via large-scale weak
// supervision", arXiv:2212.04356.
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/cross_attention.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/full_attention.h"
#include "taper/exporter/llm/seq2seq.h"

namespace taper::llm {
namespace {

using namespace eager;

constexpr int64_t taps = 3;

class WhisperEncoder : public SourceEncoder {
 public:
  WhisperEncoder(const Config& c, int64_t features, const Weights& weights)
      : weight_1(weights["convolution_1"].vector({c.hidden, features, taps})),
        bias_1(weights["convolution_1"].vector({c.hidden}, "bias")),
        weight_2(weights["convolution_2"].vector({c.hidden, c.hidden, taps})),
        bias_2(weights["convolution_2"].vector({c.hidden}, "bias")),
        positions(weights["positions"].vector({c.context, c.hidden})),
        layers(make_full_layers(c, weights["layers"], Norm::Kind::layer)),
        norm(weights["norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer) {
    set_names();
  }
  Tensor weight_1, bias_1, weight_2, bias_2;
  Tensor positions;  ///< (positions, hidden): sines and cosines, as the file holds them
  FullLayers layers;
  Norm norm;
  TAPER_LAYER(weight_1, bias_1, weight_2, bias_2, positions, layers, norm)

  Result forward(const Tensor& frames, const Tensor&) override {
    const Tensor wide = gelu(conv1d(frames, weight_1, bias_1, 1, 1));
    const Tensor half = gelu(conv1d(wide, weight_2, bias_2, 2, 1));
    return run_layers(layers, norm, half.transpose(1, 2) + positions);
  }
};

std::unique_ptr<DecoderLayer> make_whisper_layer(const Config& c, const Weights& weights,
                                                 int64_t layer) {
  return std::make_unique<CrossLayer>(c, weights, layer, Norm::Kind::layer);
}

}  // namespace

const Family whisper_decoder = {{"whisper"}, Family::FinalNorm::layer, make_whisper_layer};

std::unique_ptr<SourceEncoder> make_whisper_encoder(const Config& c, int64_t features,
                                                    const Weights& weights) {
  return std::make_unique<WhisperEncoder>(c, features, weights);
}

}  // namespace taper::llm
