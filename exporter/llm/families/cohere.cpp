// Cohere's Command R: attention and MLP read the same norm, and norms have no bias. In Command A
// and R7B only the layers with a window turn positions.
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/pre_norm_layer.h"

namespace taper::llm {
namespace {

AttentionOptions cohere_attention(const Config& c) {
  AttentionOptions o;
  o.norm = Norm::Kind::layer;
  if (c.qk_norm) o.qk_norm = AttentionOptions::QkNorm::own_weights;
  return o;
}

std::unique_ptr<DecoderLayer> make_cohere(const Config& c, const Weights& weights, int64_t layer) {
  return pre_norm_layer<GatedMlp>(c, weights, layer,
                                  {.attention = cohere_attention(c), .has_mlp_norm = false});
}

}  // namespace

const Family cohere = {{"cohere", "cohere2"}, Family::FinalNorm::layer, make_cohere};

}  // namespace taper::llm
