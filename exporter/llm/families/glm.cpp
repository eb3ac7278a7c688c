// GLM-4 of 2025: as Llama, with norms behind attention and MLP, too. Its rotary embedding turns
// neighbours in the first half of a head. The older GLM-4 is a member of the Llama family.
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/pre_norm_layer.h"

namespace taper::llm {
namespace {

std::unique_ptr<DecoderLayer> make_glm(const Config& c, const Weights& weights, int64_t layer) {
  return pre_norm_layer<JointGatedMlp>(c, weights, layer,
                                       {.norm = Norm::Kind::rms, .has_post_norms = true});
}

}  // namespace

const Family glm = {{"glm4"}, Family::FinalNorm::rms, make_glm};

}  // namespace taper::llm
