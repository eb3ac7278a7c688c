#include "taper/exporter/llm/blocks.h"

#include "taper/exporter/eager/eager.h"

namespace taper::llm {

using namespace eager;

Linear::Linear(const Weights& weights, int64_t in, int64_t out, Stored stored)
    : weight(stored == Stored::in_out ? weights.matrix(in, out) : weights.matrix(out, in)),
      bias(weights.vector_if({out}, "bias")),
      stored_(stored) {
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
  return linear(x, stored_ == Stored::in_out ? w.t(here) : w, bias, here);
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

GatedMlp::GatedMlp(const Config& c, const Weights& weights)
    : activation(c.activation),
      gate(weights["gate"], c.hidden, c.mlp),
      up(weights["up"], c.hidden, c.mlp),
      down(weights["down"], c.mlp, c.hidden) {
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

Experts::Experts(const Config& c, const Weights& layer)
    : router(layer["router"], c.hidden, c.experts),
      gate(layer["experts.gate"].stack(c.experts, c.expert_mlp, c.hidden)),
      up(layer["experts.up"].stack(c.experts, c.expert_mlp, c.hidden)),
      down(layer["experts.down"].stack(c.experts, c.hidden, c.expert_mlp)),
      activation_(c.activation),
      count_(c.experts),
      per_token_(c.experts_per_token),
      normalizes_(c.normalizes_experts) {
  set_names();
}

Tensor Experts::forward(const Tensor& input) {
  const Dim tokens = input.size(0) * input.size(1), hidden = input.size(2);
  const Tensor x = input.reshape({tokens, hidden});
  auto [shares, chosen] = topk(softmax(router(x), -1), per_token_);
  if (normalizes_) shares = shares / sum(shares, {-1}, true);

  // a row for each token and expert, sorted by experts
  const Tensor expert = chosen.reshape({tokens * per_token_}), order = argsort(expert);
  const Tensor rows = index_select(x, 0, floor_divide(order, per_token_));
  const Tensor counts = sum(eq(expert.unsqueeze(1), arange(count_, DType::i64)), {0});
  const Tensor ends = cumsum(counts, 0).to(DType::i32);
  const auto product = [&](const Tensor& a, const Weight& w) {
    return grouped_mm(a, w.widened().transpose(1, 2), ends);
  };
  const Tensor y = product(activate(activation_, product(rows, gate)) * product(rows, up), down);

  // back to the order of the tokens
  const Tensor parts = index_select(y, 0, argsort(order)).reshape({tokens, per_token_, hidden});
  return sum(parts * shares.unsqueeze(-1), {1}).reshape(input.sizes());
}

}  // namespace taper::llm
