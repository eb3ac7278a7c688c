#include "taper/exporter/llm/experts.h"

#include "taper/exporter/eager/eager.h"

namespace taper::llm {

using namespace eager;

ExpertLinear::ExpertLinear(const Weight& w, const Tensor& b, Linear::Stored stored)
    : weight(w), bias(b), stored_(stored) {
  set_names();
}

Tensor ExpertLinear::forward(const Tensor& x, const ExpertRows& rows) {
  ModuleScope scope(name());
  const Tensor w = weight.widened();
  const Tensor y =
      grouped_mm(x, stored_ == Linear::Stored::in_out ? w : w.transpose(1, 2), rows.ends);
  return bias.defined() ? y + index_select(bias, 0, rows.experts) : y;
}

Experts::Experts(const Config& c, const Weights& layer)
    : router(layer["router"], c.hidden, c.experts), config_(c) {
  if (layer["experts"].has("gate_up_proj") || layer["experts"].has("gate_up_proj_blocks"))
    make_joint(layer["experts"]);
  else
    make_separate(layer);
  set_names();
}

/// A GGUF file holds the matrices of all experts as one tensor.
std::unique_ptr<ExpertLinear> Experts::make_one(const Weights& weights, int64_t in,
                                                int64_t out) const {
  const int64_t count = config_.experts;
  if (!weights.has())
    return std::make_unique<ExpertLinear>(weights.stack(count, out, in), Tensor(),
                                          Linear::Stored::out_in);
  return std::make_unique<ExpertLinear>(Weight(weights.tensor({count, out, in}, "weight")),
                                        weights.vector_if({count, out}, "bias"),
                                        Linear::Stored::out_in);
}

void Experts::make_separate(const Weights& layer) {
  gate = make_one(layer["experts.gate"], config_.hidden, config_.expert_mlp);
  up = make_one(layer["experts.up"], config_.hidden, config_.expert_mlp);
  down = make_one(layer["experts.down"], config_.expert_mlp, config_.hidden);
}

void Experts::make_joint(const Weights& experts) {
  // blocks of MXFP4 lie along the input
  const auto make = [&](const std::string& part, int64_t in, int64_t out) {
    const bool in_blocks = experts.has(part + "_blocks");
    const Tensor weight = in_blocks ? experts.tensor({config_.experts, out, in}, part + "_blocks")
                                    : experts.tensor({config_.experts, in, out}, part);
    return std::make_unique<ExpertLinear>(
        Weight(weight), experts.vector_if({config_.experts, out}, part + "_bias"),
        in_blocks ? Linear::Stored::out_in : Linear::Stored::in_out);
  };
  gate_up = make("gate_up_proj", config_.hidden, 2 * config_.expert_mlp);
  down = make("down_proj", config_.expert_mlp, config_.hidden);
}

Experts::Chosen Experts::choose(const Tensor& x) {
  const Tensor scores = router(x);
  if (config_.scales_expert_input) {
    auto [best, experts] = topk(scores, config_.experts_per_token);
    return {sigmoid(best), experts};
  }
  auto [shares, experts] = topk(softmax(scores, -1), config_.experts_per_token);
  if (config_.normalizes_experts) shares = shares / sum(shares, {-1}, true);
  return {shares, experts};
}

Tensor Experts::activated(const Tensor& gate, const Tensor& up) const {
  if (config_.gate_limit == 0) return activate(config_.activation, gate) * up;
  const double limit = config_.gate_limit;
  const Tensor g = clamp_max(gate, limit);
  return g * sigmoid(g * config_.gate_slope) * (clamp(up, -limit, limit) + 1);
}

Tensor Experts::gated(const Tensor& x, const ExpertRows& rows) {
  if (!gate_up) return activated(gate->forward(x, rows), up->forward(x, rows));
  const Tensor joint = gate_up->forward(x, rows);
  if (config_.gate_limit == 0) {
    const std::vector<Tensor> halves = chunk(joint, 2, -1);
    return activated(halves[0], halves[1]);
  }
  // gpt-oss holds the features of both side by side
  const Tensor pairs = joint.reshape({joint.size(0), config_.expert_mlp, 2});
  return activated(pairs.select(2, 0), pairs.select(2, 1));
}

Tensor Experts::forward(const Tensor& input) {
  const int64_t per_token = config_.experts_per_token;
  const Dim tokens = input.size(0) * input.size(1), hidden = input.size(2);
  const Tensor x = input.reshape({tokens, hidden});
  const Chosen chosen = choose(x);

  // a row for each token and expert, sorted by experts
  const Tensor expert = chosen.experts.reshape({tokens * per_token}), order = argsort(expert);
  const Tensor counts = sum(eq(expert.unsqueeze(1), arange(config_.experts, DType::i64)), {0});
  const ExpertRows rows{cumsum(counts, 0).to(DType::i32), index_select(expert, 0, order)};
  Tensor taken = index_select(x, 0, floor_divide(order, per_token));
  const Tensor shares = chosen.shares.reshape({tokens * per_token, 1});
  if (config_.scales_expert_input) taken = taken * index_select(shares, 0, order);
  const Tensor y = down->forward(gated(taken, rows), rows);

  // back to the order of the tokens
  Tensor parts = index_select(y, 0, argsort(order));
  if (!config_.scales_expert_input) parts = parts * shares;
  return sum(parts.reshape({tokens, per_token, hidden}), {1}).reshape(input.sizes());
}

ExpertsAndShared::ExpertsAndShared(const Config& c, const Weights& layer)
    : experts(c, layer), shared(c, layer["shared"], c.shared_mlp) {
  const Weights gate = layer["shared_gate"];
  if (gate.has() && gate.is_gguf())  // a GGUF file leaves out the dimension of 1
    shared_gate = std::make_unique<Linear>(Weight(gate.vector({c.hidden}).unsqueeze(0)));
  else if (gate.has())
    shared_gate = std::make_unique<Linear>(gate, c.hidden, 1);
  set_names();
}

Tensor ExpertsAndShared::forward(const Tensor& x) {
  const Tensor of_all = shared(x);
  return experts(x) + (shared_gate ? of_all * sigmoid((*shared_gate)(x)) : of_all);
}

std::unique_ptr<TokenBlock> make_experts(const Config& c, const Weights& layer) {
  if (c.shared_mlp > 0) return std::make_unique<ExpertsAndShared>(c, layer);
  return std::make_unique<Experts>(c, layer);
}

}  // namespace taper::llm
