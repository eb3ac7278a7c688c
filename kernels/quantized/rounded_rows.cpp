#include "taper/kernels/quantized/rounded_rows.h"

#include <cfloat>
#include <cmath>
#include <limits>

namespace taper::quantized {
namespace {

/// Rounds numbers below 2^22 to the nearest integer, halves to even, as nearbyint does: the sum has
/// no bits for a fraction. There is no call for each element.
float nearest(float x) {
  constexpr float shift = 12582912;  // 1.5 * 2^23
  return (x + shift) - shift;
}

}  // namespace

void round_unit(const float* x, int8_t* values, RoundedUnit& unit) {
  float largest = 0;
  bool is_finite = true;
  for (int k = 0; k < unit_elements; ++k) {
    const float magnitude = std::fabs(x[k]);
    is_finite &= magnitude <= FLT_MAX;
    largest = magnitude > largest ? magnitude : largest;
  }
  const bool is_zero = !is_finite || largest < 1e-30f;
  const float inverse = is_zero ? 0.0f : 127 / largest;
  for (int half = 0; half < 2; ++half) {
    int32_t sum = 0;
    for (int k = 16 * half; k < 16 * half + 16; ++k) {
      const auto rounded = static_cast<int32_t>(is_zero ? 0.0f : nearest(x[k] * inverse));
      values[k] = static_cast<int8_t>(rounded);
      sum += rounded;
    }
    unit.sum[half] = sum;
  }
  unit.sum[2] = unit.sum[0] + unit.sum[1];
  unit.scale = !is_finite ? std::numeric_limits<float>::quiet_NaN() : is_zero ? 0 : largest / 127;
  for (int i = 0; i < 3; ++i) unit.weighted[i] = unit.scale * static_cast<float>(unit.sum[i]);
  unit.without_8 = -8 * unit.sum[2], unit.without_128 = -128 * unit.sum[2];
  for (int half = 0; half < 2; ++half) unit.without_32[half] = -32 * unit.sum[half];
  unit.unused = 0;
}

}  // namespace taper::quantized
