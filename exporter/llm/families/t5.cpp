// T5: RMS norms, no biases, scores that are not scaled, and positions by a bias of the scores. The
// first layer's bias serves all. C. Raffel and others, "Exploring the limits of transfer learning",
// arXiv:1910.10683.
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/cross_attention.h"
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/full_attention.h"
#include "taper/exporter/llm/seq2seq.h"

namespace taper::llm {
namespace {

using namespace eager;

class T5Encoder : public SourceEncoder {
 public:
  T5Encoder(const Config& c, const Weights& weights, const Embedding& shared)
      : embedding(shared),
        relative_bias(c, weights["layers"][int64_t{0}]["attention"], true),
        layers(make_full_layers(c, weights["layers"], Norm::Kind::rms)),
        norm(weights["norm"], {c.hidden}, c.norm_eps, Norm::Kind::rms) {
    set_names();
  }
  Embedding embedding;
  RelativeBias relative_bias;
  FullLayers layers;
  Norm norm;
  TAPER_LAYER(embedding, relative_bias, layers, norm)

  Result forward(const Tensor& ids, const Tensor& lengths) override {
    return run_layers(layers, norm, embedding(ids), score_bias(ids, lengths));
  }

 private:
  /// -inf hides padding.
  Tensor score_bias(const Tensor& ids, const Tensor& lengths) const {
    const Tensor positions = cumsum(ones_like(narrow(ids, 0, 0, 1)), 1) - 1;  // (1, m)
    const Tensor padding = ge(positions, lengths.unsqueeze(1));               // (batch, m)
    return masked_fill(relative_bias.at(positions, positions[0]), padding.unsqueeze(1).unsqueeze(1),
                       -INFINITY);
  }
};

/// Some files store the shared embedding again for each part.
void read_copies(const Weights& weights, const Config& c) {
  for (const char* part : {"encoder", "decoder"})
    if (const Weights copy = weights[part]["shared_embedding"]; copy.has())
      (void)copy.matrix(c.vocabulary, c.hidden);
}

std::unique_ptr<DecoderLayer> make_t5_layer(const Config& c, const Weights& weights,
                                            int64_t layer) {
  return std::make_unique<CrossLayer>(c, weights, layer, Norm::Kind::rms);
}

}  // namespace

const Family t5_decoder = {{"t5"}, Family::FinalNorm::rms, make_t5_layer};

std::unique_ptr<SourceEncoder> make_t5_encoder(const Config& c, const Weights& weights,
                                               const Embedding& shared) {
  read_copies(weights, c);
  return std::make_unique<T5Encoder>(c, weights["encoder"], shared);
}

}  // namespace taper::llm
