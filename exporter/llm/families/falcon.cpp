// Falcon: one projection for queries, keys and values, by groups; attention and MLP are parallel
// and read one norm or, in the newer form, one each. E. Almazrouei and others, arXiv:2311.16867.
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/pre_norm_layer.h"

namespace taper::llm {
namespace {

std::unique_ptr<DecoderLayer> make_falcon(const Config& c, const Weights& weights, int64_t layer) {
  return pre_norm_layer<PlainMlp>(c, weights, layer,
                                  {.attention = {.projections = Projections::by_group},
                                   .has_mlp_norm = c.two_norms || !c.parallel,
                                   .parallel = c.parallel});
}

}  // namespace

const Family falcon = {{"falcon"}, Family::FinalNorm::layer, make_falcon};

}  // namespace taper::llm
