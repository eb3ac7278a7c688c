// Gemma 1 to 3. Norms store their weight less 1. Gemma 2 and 3 also normalise what attention and
// MLP give, and let most layers see only a window; Gemma 3 normalises queries and keys. "Gemma 2",
// arXiv:2408.00118; "Gemma 3", arXiv:2503.19786.
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/pre_norm_layer.h"

namespace taper::llm {
namespace {

AttentionOptions gemma_attention(const Config& c) {
  AttentionOptions o;
  o.norm = Norm::Kind::rms_plus_one;
  if (c.family == "gemma3_text") o.qk_norm = AttentionOptions::QkNorm::per_head;
  return o;
}

std::unique_ptr<DecoderLayer> make_gemma(const Config& c, const Weights& weights, int64_t layer) {
  return pre_norm_layer<GatedMlp>(c, weights, layer,
                                  {.attention = gemma_attention(c),
                                   .norm = Norm::Kind::rms_plus_one,
                                   .has_post_norms = c.family != "gemma"});
}

}  // namespace

const Family gemma = {
    {"gemma", "gemma2", "gemma3_text"}, Family::FinalNorm::rms_plus_one, make_gemma};

}  // namespace taper::llm
