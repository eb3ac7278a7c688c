#include "taper/exporter/llm/blocks.h"

#include "taper/exporter/eager/eager.h"

namespace taper::llm {

using namespace eager;

Linear::Linear(const Weights& weights, int64_t in, int64_t out, Stored stored)
    : weight(stored == Stored::in_out ? weights.matrix(in, out) : weights.matrix(out, in)),
      bias(weights.vector_if({out}, "bias")),
      stored_(stored) {
  const LowRank added = weights.low_rank(out, in);
  lora_down = added.down, lora_up = added.up, chosen_ = added.chosen, scale_ = added.scale;
  set_names();
}

Linear::Linear(const Weights& joint, int64_t in, int64_t out, int64_t count, int64_t index)
    : weight(narrow(joint.matrix(count * out, in, "in_proj_weight"), 0, index * out, out)) {
  const Tensor biases = joint.vector_if({count * out}, "in_proj_bias");
  if (biases.defined()) bias = narrow(biases, 0, index * out, out);
  set_names();
}

Tensor Linear::forward(const Tensor& x, Location here) {
  const Tensor w = weight.widened();
  const Tensor y = linear(x, stored_ == Stored::in_out ? w.t(here) : w, bias, here);
  return lora_up.defined() ? y + added(x, here) : y;
}

// What adapters say: one for all of x, or one for each row of its batch.
Tensor Linear::added(const Tensor& x, Location here) const {
  if (chosen_ == nullptr) {
    const Tensor y = linear(x, lora_down, {}, here);
    return linear(scale_ == 1 ? y : mul(y, Scalar(scale_), here), lora_up, {}, here);
  }
  if (x.rank() != 3)
    throw ExportError(
        "adapters with names need products of (batch, n, features); give one without a name");
  const auto of_rows = [&](const Tensor& all) {
    return index_select(all, 0, *chosen_, here).transpose(1, 2, here);
  };
  return matmul(matmul(x, of_rows(lora_down), here), of_rows(lora_up), here);
}

Norm::Norm(const Weights& weights, Ints sizes, double eps, Kind kind)
    : weight(weights.vector(sizes)),
      bias(weights.vector_if(sizes, "bias")),
      eps_(eps),
      kind_(kind) {
  if (kind == Kind::rms_plus_one && !weights.is_gguf()) weight = weight + 1;
  set_names();
}

Tensor Norm::forward(const Tensor& x, Location here) {
  const Dims last = {weight.size(-1)};
  if (kind_ != Kind::layer) return rms_norm(x, last, weight, eps_, here);
  if (weight.rank() == 1) return layer_norm(x, last, weight, bias, eps_, here);
  return mul(layer_norm(x, last, {}, {}, eps_, here), weight, here);
}

Tensor activate(const std::string& activation, const Tensor& x) {
  if (activation == "silu") return silu(x);
  if (activation == "relu") return relu(x);
  if (activation == "quick_gelu") return x * sigmoid(x * 1.702);
  return gelu(x, activation == "gelu_tanh" ? "tanh" : "none");
}

PlainMlp::PlainMlp(const Config& c, const Weights& weights, Linear::Stored stored)
    : activation(c.activation),
      up(weights["up"], c.hidden, c.mlp, stored),
      down(weights["down"], c.mlp, c.hidden, stored) {
  set_names();
}
Tensor PlainMlp::forward(const Tensor& x) { return down(activate(activation, up(x))); }

GatedMlp::GatedMlp(const Config& c, const Weights& weights, int64_t width)
    : activation(c.activation),
      gate(weights["gate"], c.hidden, width > 0 ? width : c.mlp),
      up(weights["up"], c.hidden, width > 0 ? width : c.mlp),
      down(weights["down"], width > 0 ? width : c.mlp, c.hidden) {
  set_names();
}
Tensor GatedMlp::forward(const Tensor& x) { return down(activate(activation, gate(x)) * up(x)); }

JointGatedMlp::JointGatedMlp(const Config& c, const Weights& weights)
    : activation(c.activation),
      gate_up(weights["gate_up"], c.hidden, 2 * c.mlp),
      down(weights["down"], c.mlp, c.hidden) {
  set_names();
}
Tensor JointGatedMlp::forward(const Tensor& x) {
  const std::vector<Tensor> halves = chunk(gate_up(x), 2, -1);
  return down(activate(activation, halves[0]) * halves[1]);
}

}  // namespace taper::llm
