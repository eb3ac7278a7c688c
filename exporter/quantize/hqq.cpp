#include "taper/exporter/quantize/hqq.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace taper::quantize {
namespace {

constexpr float norm = 0.7f, first_beta = 10, beta_growth = 1.01f;
constexpr int most_steps = 20;
constexpr float largest_inverse_scale = 2e4f;  // beyond it, a scale underflows in f16

/// The error that remains when small errors count as zero: the proximal operator of |x|^norm.
float shrink(float x, float beta) {
  const float size = std::fabs(x);
  if (size == 0) return 0;
  const float left = size - std::pow(size, norm - 1) / beta;
  return left > 0 ? std::copysign(left, x) : 0;
}

/// One step for a group. Returns the sum of the errors before the step.
double step(std::span<const float> w, float inverse, int highest, float beta, float& zero) {
  double errors = 0, sum = 0;
  for (const float x : w) {
    const float q =
        std::clamp(std::nearbyint(x * inverse + zero), 0.0f, static_cast<float>(highest));
    const float error = x - (q - zero) / inverse;
    errors += std::fabs(error);
    sum += q - (x - shrink(error, beta)) * inverse;
  }
  zero = static_cast<float>(sum / static_cast<double>(w.size()));
  return errors;
}

}  // namespace

Hqq half_quadratic(std::span<const float> w, int group, int highest) {
  const size_t elements = static_cast<size_t>(group), groups = w.size() / elements;
  std::vector<float> inverse(groups);
  Hqq result{std::vector<float>(groups), std::vector<float>(groups)};
  for (size_t g = 0; g < groups; ++g) {
    const auto [low, high] = std::ranges::minmax(w.subspan(g * elements, elements));
    inverse[g] = std::min(static_cast<float>(highest) / (high - low), largest_inverse_scale);
    result.zero[g] = -low * inverse[g];
    if (highest == 15) result.zero[g] = std::nearbyint(result.zero[g]);
  }
  float beta = first_beta;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < most_steps; ++i, beta *= beta_growth) {
    double errors = 0;
    for (size_t g = 0; g < groups; ++g)
      errors += step(w.subspan(g * elements, elements), inverse[g], highest, beta, result.zero[g]);
    if (errors >= least) break;
    least = errors;
  }
  for (size_t g = 0; g < groups; ++g) result.scale[g] = 1 / inverse[g];
  return result;
}

}  // namespace taper::quantize
