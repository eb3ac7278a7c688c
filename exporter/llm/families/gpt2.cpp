// GPT-2 and its kin: norm, attention, norm, plain MLP, all with biases. GPT-2, OPT and StarCoder
// learn positions; StarCoder 2 turns them. Two of the papers: A. Radford and others, "Language
// models are unsupervised multitask learners", 2019; S. Zhang and others, "OPT", arXiv:2205.01068.
#include "taper/exporter/llm/families.h"
#include "taper/exporter/llm/pre_norm_layer.h"

namespace taper::llm {
namespace {

/// GPT-2 stores weights (in, out).
Linear::Stored stored(const Config& c) {
  return c.family == "gpt2" && !c.is_gguf ? Linear::Stored::in_out : Linear::Stored::out_in;
}

AttentionOptions options_of(const Config& c, const Weights& attention) {
  AttentionOptions o;
  o.stored = stored(c);
  if (attention["qkv"].has())
    o.projections = c.qkv_by_group ? Projections::by_group : Projections::joint;
  return o;
}

std::unique_ptr<DecoderLayer> make_gpt2(const Config& c, const Weights& weights, int64_t layer) {
  return std::make_unique<PreNormLayer>(
      c, weights, layer, PreNormOptions{.attention = options_of(c, weights["attention"])},
      std::make_unique<PlainMlp>(c, weights["mlp"], stored(c)));
}

}  // namespace

const Family gpt2 = {
    {"gpt2", "gpt_bigcode", "starcoder2", "opt"}, Family::FinalNorm::layer, make_gpt2};

}  // namespace taper::llm
