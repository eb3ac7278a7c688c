// ModernBERT: norms in front, a gated MLP, and a rotary embedding; most layers see only a window.
// B. Warner and others, "Smarter, better, faster, longer", arXiv:2412.13663.
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/encoder.h"

namespace taper::llm {
namespace {

using namespace eager;

/// In both directions, with one projection for queries, keys and values.
class TurnedAttention : public nn::Module {
 public:
  TurnedAttention(const Config& c, const Weights& weights)
      : qkv(weights["qkv"], c.hidden, 3 * c.hidden),
        out(weights["out"], c.hidden, c.hidden),
        heads_(c.heads),
        head_dim_(c.head_dim),
        scale_(c.attention_scale) {
    set_names();
  }
  Linear qkv, out;
  TAPER_LAYER(qkv, out)

  Tensor forward(const Tensor& x, const Tensor& mask, const Rotation& rotation) {
    const Dim batch = x.size(0), n = x.size(1);
    const Tensor all = qkv(x).reshape({batch, n, 3, heads_, head_dim_});
    const auto part = [&](int64_t i) { return all.select(2, i).transpose(1, 2); };
    const Tensor y = scaled_dot_product_attention(
        rotate(part(0), rotation), rotate(part(1), rotation), part(2), mask, 0, false, scale_);
    return out(y.transpose(1, 2).reshape(x.sizes()));
  }

 private:
  int64_t heads_, head_dim_;
  double scale_;
};

class ModernBertLayer : public EncoderLayer {
 public:
  ModernBertLayer(const Config& c, const Weights& weights, int64_t layer)
      : attention(c, weights["attention"]),
        mlp_norm(weights["mlp_norm"], {c.hidden}, c.norm_eps, Norm::Kind::layer),
        mlp(c, weights["mlp"]),
        is_windowed_(c.is_windowed(layer)) {
    // the first layer reads the norm of the embedding
    if (layer > 0)
      attention_norm = std::make_unique<Norm>(weights["attention_norm"], Ints{c.hidden}, c.norm_eps,
                                              Norm::Kind::layer);
    set_names();
  }
  std::unique_ptr<Norm> attention_norm;
  TurnedAttention attention;
  Norm mlp_norm;
  JointGatedMlp mlp;
  TAPER_LAYER(attention_norm, attention, mlp_norm, mlp)

  Tensor forward(const Tensor& input, const EncoderStep& step) override {
    const Tensor normed = attention_norm ? (*attention_norm)(input) : input;
    const Tensor x =
        input + (is_windowed_ ? attention.forward(normed, step.near, step.local_rotation)
                              : attention.forward(normed, step.seen, step.rotation));
    return x + mlp(mlp_norm(x));
  }

 private:
  bool is_windowed_;
};

}  // namespace

std::unique_ptr<EncoderLayer> make_modernbert_layer(const Config& c, const Weights& weights,
                                                    int64_t layer) {
  return std::make_unique<ModernBertLayer>(c, weights, layer);
}

}  // namespace taper::llm
