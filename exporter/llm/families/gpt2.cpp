// GPT-2 and its kin: norm, attention, norm, plain MLP, all with biases. GPT-2, OPT and StarCoder
// learn positions; StarCoder 2 turns them. Two of the papers: A. Radford and others, "Language
// models are unsupervised multitask learners", 2019; S. Zhang and others, "OPT", arXiv:2205.01068.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"

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

class Gpt2Layer : public DecoderLayer {
 public:
  Gpt2Layer(const Config& c, const Weights& weights, int64_t layer)
      : attention_norm(weights["attention_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        attention(c, weights["attention"], layer, options_of(c, weights["attention"])),
        mlp_norm(weights["mlp_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        mlp(c, weights["mlp"], stored(c)) {
    set_names();
  }

  Norm attention_norm;
  Attention attention;
  Norm mlp_norm;
  PlainMlp mlp;
  TAPER_LAYER(attention_norm, attention, mlp_norm, mlp)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor x = input + attention(attention_norm(input), step);
    return x + mlp(mlp_norm(x));
  }
};

}  // namespace

const Family gpt2 = {
    {"gpt2", "gpt_bigcode", "starcoder2", "opt"}, Family::FinalNorm::layer, make<Gpt2Layer>};

}  // namespace taper::llm
