// The small parts of language models: projections, norms and the MLP. Each takes its weights from a
// `Weights` when it is made.
#pragma once
#include <string>

#include "taper/exporter/llm/config.h"
#include "taper/exporter/llm/weights.h"
#include "taper/exporter/nn/module.h"

namespace taper::llm {

/// x weightᵀ + bias: (…, in) -> (…, out). It has a bias if the checkpoint has one, and adds what an
/// adapter says.
class Linear : public nn::Layer {
 public:
  enum class Stored : uint8_t { out_in, in_out };  ///< GPT-2 stores weights the other way round
  Linear(const Weights& weights, int64_t in, int64_t out, Stored stored = Stored::out_in);
  /// One of `count` projections in a matrix called in_proj_weight, as torch.nn.MultiheadAttention
  /// stores them.
  Linear(const Weights& joint, int64_t in, int64_t out, int64_t count, int64_t index);
  /// With the weight of an embedding.
  explicit Linear(const Weight& shared) : weight(shared) { set_names(); }

  Weight weight;
  Tensor bias;
  Tensor lora_down, lora_up;  ///< LowRank
  TAPER_LAYER(weight, bias, lora_down, lora_up)
  Tensor forward(const Tensor& x, Location here = Location::current()) override;

 private:
  Tensor added(const Tensor& x, Location here) const;
  Stored stored_ = Stored::out_in;
  std::shared_ptr<const Tensor> chosen_;  ///< LowRank
  double scale_ = 1;
};

/// Rows of a table: ids (batch, n) -> (batch, n, features).
class Embedding : public nn::Layer {
 public:
  Embedding(const Weights& weights, int64_t rows, int64_t features)
      : weight(weights.matrix(rows, features)) {
    set_names();
  }
  Weight weight;
  TAPER_LAYER(weight)
  Tensor forward(const Tensor& ids, Location here = Location::current()) override {
    return eager::embedding(weight.widened(), ids, -1, false, here);
  }
};

/// A norm over the last dimension.
class Norm : public nn::Layer {
 public:
  enum class Kind : uint8_t {
    rms,           ///< x / √(mean(x²) + eps) weight
    rms_plus_one,  ///< the same with weight + 1 (Gemma); GGUF files hold the sum
    layer,         ///< (x - mean) / √(variance + eps) weight + bias; the bias may be missing
  };
  /// `sizes`: those of the weight. With two, each row of the one before last has its own weights.
  Norm(const Weights& weights, Ints sizes, double eps, Kind kind);

  Tensor weight, bias;
  TAPER_LAYER(weight, bias)
  Tensor forward(const Tensor& x, Location here = Location::current()) override;

 private:
  double eps_;
  Kind kind_;
};

/// act(x) by name: "silu", "gelu", "gelu_tanh", "relu", "quick_gelu".
Tensor activate(const std::string& activation, const Tensor& x);

/// What a layer does to each token by itself.
class TokenBlock : public nn::Module {
 public:
  virtual Tensor forward(const Tensor& x) = 0;
  Tensor operator()(const Tensor& x) {
    eager::ModuleScope scope(name());
    return forward(x);
  }
};

/// down(act(up(x))).
class PlainMlp : public TokenBlock {
 public:
  PlainMlp(const Config& config, const Weights& weights,
           Linear::Stored stored = Linear::Stored::out_in);
  std::string activation;
  Linear up, down;
  TAPER_LAYER(up, down)
  Tensor forward(const Tensor& x) override;
};

/// down(act(gate(x)) up(x)). N. Shazeer, "GLU variants improve transformer", arXiv:2002.05202.
class GatedMlp : public TokenBlock {
 public:
  /// `width`: features between the projections; 0: those of the configuration.
  GatedMlp(const Config& config, const Weights& weights, int64_t width = 0);
  std::string activation;
  Linear gate, up, down;
  TAPER_LAYER(gate, up, down)
  Tensor forward(const Tensor& x) override;
};

/// The same with one projection for gate and up (Phi-3).
class JointGatedMlp : public TokenBlock {
 public:
  JointGatedMlp(const Config& config, const Weights& weights);
  std::string activation;
  Linear gate_up, down;
  TAPER_LAYER(gate_up, down)
  Tensor forward(const Tensor& x) override;
};

}  // namespace taper::llm
