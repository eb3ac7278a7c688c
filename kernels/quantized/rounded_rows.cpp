#include "taper/kernels/quantized/rounded_rows.h"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

namespace taper::quantized {
namespace {

/// Rounds numbers below 2^22 to the nearest integer, halves to even, as nearbyint does: the sum has
/// no bits for a fraction. There is no call for each element.
float nearest(float x) {
  constexpr float shift = 12582912;  // 1.5 * 2^23
  return (x + shift) - shift;
}

constexpr int half = unit_elements / 2;

/// The largest magnitude of a unit, in as many lanes as half of it has. False: not all are finite.
bool largest_of(const float* x, float& largest) {
  float most[half];
  int32_t infinite[half];
  for (int k = 0; k < half; ++k) {
    const float a = std::fabs(x[k]), b = std::fabs(x[k + half]);
    most[k] = a > b ? a : b;
    infinite[k] = !(a <= FLT_MAX) | !(b <= FLT_MAX);
  }
  int32_t any = 0;
  for (int k = 0; k < half; ++k) any |= infinite[k];
  for (int step = half / 2; step > 0; step /= 2)
    for (int k = 0; k < step; ++k) most[k] = most[k] > most[k + step] ? most[k] : most[k + step];
  largest = most[0];
  return any == 0;
}

/// Sixteen elements as integers. Returns their sum.
int32_t round_half(const float* x, float inverse, int8_t* values) {
  int32_t rounded[half], sum = 0;
  for (int k = 0; k < half; ++k) rounded[k] = static_cast<int32_t>(nearest(x[k] * inverse));
  for (int k = 0; k < half; ++k) values[k] = static_cast<int8_t>(rounded[k]);
  for (int k = 0; k < half; ++k) sum += rounded[k];
  return sum;
}

}  // namespace

void round_unit(const float* x, int8_t* values, RoundedUnit& unit) {
  float largest = 0;
  const bool is_finite = largest_of(x, largest), is_zero = !is_finite || largest < 1e-30f;
  if (is_zero) std::memset(values, 0, unit_elements);
  int32_t sums[2] = {};
  for (int i = 0; i < 2 && !is_zero; ++i)
    sums[i] = round_half(x + i * half, 127 / largest, values + i * half);
  unit.scale = !is_finite ? std::numeric_limits<float>::quiet_NaN() : is_zero ? 0 : largest / 127;
  const int32_t all = sums[0] + sums[1], parts[] = {sums[0], sums[1], all};
  for (int i = 0; i < 3; ++i) unit.weighted[i] = unit.scale * static_cast<float>(parts[i]);
  unit.without_8 = -8 * all, unit.without_128 = -128 * all;
  for (int i = 0; i < 2; ++i) unit.without_32[i] = -32 * sums[i];
}

void round_units(const float* x, index_t count, int8_t* values, RoundedUnit* units) {
  for (index_t u = 0; u < count; ++u)
    round_unit(x + u * unit_elements, values + u * unit_elements, units[u]);
}

}  // namespace taper::quantized
