// GPT-NeoX and Pythia: attention and MLP have a norm each and, usually, the same input. S. Black
// and others, "GPT-NeoX-20B", arXiv:2204.06745.
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/pre_norm_layer.h"

namespace taper::llm {
namespace {

std::unique_ptr<DecoderLayer> make_neox(const Config& c, const Weights& weights, int64_t layer) {
  return pre_norm_layer<PlainMlp>(
      c, weights, layer,
      {.attention = {.projections = Projections::by_group}, .parallel = c.parallel});
}

}  // namespace

const Family neox = {{"gpt_neox"}, Family::FinalNorm::layer, make_neox};

}  // namespace taper::llm
