// Gemma 1 to 3. Norms store their weight less 1. Gemma 2 and 3 also normalise what attention and
// MLP give, and let most layers see only a window; Gemma 3 normalises queries and keys. "Gemma 2",
// arXiv:2408.00118; "Gemma 3", arXiv:2503.19786.
#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/families.h"

namespace taper::llm {
namespace {

AttentionOptions gemma_attention(const Config& c) {
  AttentionOptions o;
  o.norm = Norm::Kind::rms_plus_one;
  if (c.family == "gemma3_text") o.qk_norm = AttentionOptions::QkNorm::per_head;
  return o;
}

class GemmaLayer : public DecoderLayer {
 public:
  GemmaLayer(const Config& c, const Weights& weights, int64_t layer)
      : attention_norm(make_norm(c, weights["attention_norm"])),
        attention(c, weights["attention"], layer, gemma_attention(c)),
        mlp_norm(make_norm(c, weights["mlp_norm"])),
        mlp(c, weights["mlp"]) {
    if (c.family != "gemma") {
      attention_post_norm = make_norm(c, weights["attention_post_norm"]);
      mlp_post_norm = make_norm(c, weights["mlp_post_norm"]);
    }
    set_names();
  }

  std::unique_ptr<Norm> attention_norm;
  Attention attention;
  std::unique_ptr<Norm> attention_post_norm, mlp_norm;
  GatedMlp mlp;
  std::unique_ptr<Norm> mlp_post_norm;
  TAPER_LAYER(attention_norm, attention, attention_post_norm, mlp_norm, mlp, mlp_post_norm)

  Tensor forward(const Tensor& input, const Step& step) override {
    const Tensor x = input + after(attention_post_norm, attention((*attention_norm)(input), step));
    return x + after(mlp_post_norm, mlp((*mlp_norm)(x)));
  }

 private:
  static std::unique_ptr<Norm> make_norm(const Config& c, const Weights& weights) {
    return std::make_unique<Norm>(weights, Ints{c.hidden}, c.norm_eps, Norm::Kind::rms_plus_one);
  }
  static Tensor after(const std::unique_ptr<Norm>& norm, const Tensor& x) {
    return norm ? (*norm)(x) : x;
  }
};

}  // namespace

const Family gemma = {
    {"gemma", "gemma2", "gemma3_text"}, Family::FinalNorm::rms_plus_one, make<GemmaLayer>};

}  // namespace taper::llm
