// The integers of static quantization, and the real numbers that they stand for.
#pragma once
#include <cstdint>

namespace taper::quantize {

/// The integer q in [lowest, highest] stands for scale * (q - zero_point).
struct Grid {
  double scale = 1;  ///< a number that f32 holds exactly
  int64_t zero_point = 0;
  int64_t lowest = -128, highest = 127;

  /// The least and the greatest real number that an integer stands for.
  double low() const { return scale * static_cast<double>(lowest - zero_point); }
  double high() const { return scale * static_cast<double>(highest - zero_point); }
  bool operator==(const Grid&) const = default;
};

/// No scale of an activation is smaller. XNNPACK and the quantizers of PyTorch for it have the same
/// bound.
inline constexpr float least_scale = 0x1p-12f;

/// The grid of an activation: 256 integers from `low` to `high`. The range is widened to contain 0,
/// and an integer stands for 0 exactly. Computed in f32, as PyTorch's observers do.
Grid affine_grid(float low, float high);

/// The grid of a weight: -highest..highest from -most to most, zero point 0. The scale is at least
/// `least`.
Grid symmetric_grid(float most, float least = least_scale, int highest = 127);

}  // namespace taper::quantize
