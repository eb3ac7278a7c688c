#pragma once
#include <map>
#include <memory>

#include "taper/exporter/optim/optimizer.h"

namespace taper::optim {

/// The format of LowBitAdam's running means. A block of neighbouring elements shares a scale: its
/// largest magnitude (fp8: divided by 448). An element is the nearest entry of a table, times the
/// scale.
enum class StateFormat {
  eight_bit,  ///< blocks of 256; tables with dynamic exponents, one with and one without signs
  four_bit,   ///< blocks of 128, two codes a byte, the first in the high bits
  fp8         ///< blocks of 256, float8 e4m3 bytes
};

struct LowBitAdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool decoupled_weight_decay = true;  ///< AdamW; false: Adam, the decay is part of the gradient
  StateFormat format = StateFormat::eight_bit;
};

namespace internal {
struct Codebook;  // a table, and what finds the nearest entry

/// A running mean: plain, or as codes.
struct LowBitMean {
  Tensor plain;         ///< of a parameter of fewer than 4096 elements or of broken blocks
  Tensor codes, scale;  ///< u8 (bytes), f32 (blocks)
  std::shared_ptr<const Codebook> book;
};
struct LowBitMoments {
  LowBitMean mean, square;
};
}  // namespace internal

/// Adam and AdamW with states of one byte or half a byte for each element. Dettmers et al., "8-bit
/// optimizers via block-wise quantization", 2022; Li et al., "Memory efficient optimizers with
/// 4-bit states", 2023. Each step decodes a state, updates it in f32, uses it, and encodes it
/// again. States: lr, step, and for each parameter exp_avg.codes, exp_avg.scale, exp_avg_sq.codes
/// and exp_avg_sq.scale. Small parameters have exp_avg and exp_avg_sq in f32 instead.
class LowBitAdam : public WithBetas<LowBitAdamOptions, internal::LowBitMoments> {
 public:
  explicit LowBitAdam(const std::vector<Tensor>& parameters, LowBitAdamOptions options = {},
                      Location here = Location::current())
      : LowBitAdam(std::vector{ParameterGroup<LowBitAdamOptions>{parameters, options}}, here) {}
  explicit LowBitAdam(const std::vector<ParameterGroup<LowBitAdamOptions>>& groups,
                      Location here = Location::current());

 protected:
  void update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) override;

 private:
  internal::LowBitMean make_mean(const std::string& kind, const Tensor& parameter,
                                 StateFormat format, bool is_signed);

  std::map<std::pair<StateFormat, bool>, std::shared_ptr<const internal::Codebook>> books_;
};

}  // namespace taper::optim
