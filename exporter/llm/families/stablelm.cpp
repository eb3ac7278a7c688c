// StableLM: as Llama with layer norms and a partial rotary embedding; some read one norm in
// parallel.
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/pre_norm_layer.h"

namespace taper::llm {
namespace {

std::unique_ptr<DecoderLayer> make_stablelm(const Config& c, const Weights& weights,
                                            int64_t layer) {
  return pre_norm_layer<GatedMlp>(c, weights, layer, {.has_mlp_norm = !c.parallel});
}

}  // namespace

const Family stablelm = {{"stablelm"}, Family::FinalNorm::layer, make_stablelm};

}  // namespace taper::llm
