// BLOOM: positions by ALiBi alone, and a norm behind the embedding. "BLOOM", arXiv:2211.05100.
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/pre_norm_layer.h"

namespace taper::llm {
namespace {

std::unique_ptr<DecoderLayer> make_bloom(const Config& c, const Weights& weights, int64_t layer) {
  return pre_norm_layer<PlainMlp>(
      c, weights, layer,
      {.attention = {.projections = Projections::by_group, .alibi = true},
       .residual_after_norm = c.residual_after_norm});
}

}  // namespace

const Family bloom = {{"bloom"}, Family::FinalNorm::layer, make_bloom};

}  // namespace taper::llm
