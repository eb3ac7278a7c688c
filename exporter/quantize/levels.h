// The numbers of formats of blocks whose codes are no integers.
#pragma once

namespace taper::quantize {

/// For a scale of 1.
struct FloatLevels {
  float largest;  ///< magnitude
  /// The code of the level that is nearest to `x`.
  int (*nearest)(float x);
  float (*level)(int code);
};

/// The levels of kernels/quantized/float_levels.h and kernels/float8.h. Those of e2m1 are doubled,
/// as kernels decode them.
extern const FloatLevels nf4_levels, doubled_e2m1_levels, e2m3_levels, e3m2_levels, e4m3_levels,
    e5m2_levels;

}  // namespace taper::quantize
