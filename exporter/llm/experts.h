// Mixtures of experts: gated MLPs of which a router chooses a few for each token. A. Jiang and
// others, "Mixtral of experts", arXiv:2401.04088.
#pragma once
#include <memory>

#include "taper/exporter/llm/blocks.h"

namespace taper::llm {

/// Rows of tokens in the order of the experts that take them.
struct ExpertRows {
  Tensor ends;     ///< i32 (experts): where the rows of each expert end
  Tensor experts;  ///< i64 (rows): the expert of each row
};

/// A projection of each expert: rows (m, in) -> (m, out).
class ExpertLinear : public nn::Module {
 public:
  /// `weight`: (experts, out, in) or (experts, in, out). `bias`: (experts, out), or undefined.
  ExpertLinear(const Weight& weight, const Tensor& bias, Linear::Stored stored);
  Weight weight;
  Tensor bias;
  TAPER_LAYER(weight, bias)
  Tensor forward(const Tensor& x, const ExpertRows& rows);

 private:
  Linear::Stored stored_;
};

/// The tokens of an expert are one product, so the work is that of the chosen experts. Files have a
/// matrix for each expert, or one tensor for all; gate and up may be one projection.
///
/// With a gate limit (gpt-oss): gate = min(gate, limit), up = clamp(up, -limit, limit), and
/// down(gate sigmoid(slope gate) (up + 1)) is an expert's result.
class Experts : public TokenBlock {
 public:
  Experts(const Config& config, const Weights& layer);
  Linear router;
  std::unique_ptr<ExpertLinear> gate, up, gate_up, down;
  TAPER_LAYER(router, gate, up, gate_up, down)
  Tensor forward(const Tensor& x) override;

 private:
  struct Chosen {
    Tensor shares, experts;  ///< (tokens, experts of a token)
  };
  std::unique_ptr<ExpertLinear> make_one(const Weights& weights, int64_t in, int64_t out) const;
  void make_separate(const Weights& layer);
  void make_joint(const Weights& experts);
  Chosen choose(const Tensor& x);
  Tensor gated(const Tensor& x, const ExpertRows& rows);
  Tensor activated(const Tensor& gate, const Tensor& up) const;

  Config config_;
};

/// Experts, and one more that takes every token. Its result may be scaled by the sigmoid of a
/// projection (Qwen 2).
class ExpertsAndShared : public TokenBlock {
 public:
  ExpertsAndShared(const Config& config, const Weights& layer);
  Experts experts;
  GatedMlp shared;
  std::unique_ptr<Linear> shared_gate;
  TAPER_LAYER(experts, shared, shared_gate)
  Tensor forward(const Tensor& x) override;
};

/// The one or the other, as the configuration says.
std::unique_ptr<TokenBlock> make_experts(const Config& config, const Weights& layer);

}  // namespace taper::llm
