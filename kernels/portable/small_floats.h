// Conversions of f16 and bf16 without branches and calls, so that loops over them vectorise. The
// bits are those of Half and BFloat16.
#pragma once
#include "taper/kernels/portable/math.h"
#include "taper/runtime/core/dtype.h"

namespace taper::portable {

inline float to_float(Half h) {
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000u) << 16, magnitude = h.bits & 0x7fffu;
  const int32_t size = static_cast<int32_t>(magnitude);
  // a subnormal: the mantissa of a number between 2^-14 and 2^-13, minus 2^-14
  const float smallest = math::float_of(0x38800000u);
  const float subnormal = math::float_of(0x38800000u | (magnitude << 13)) - smallest;
  const uint32_t rebiased = (magnitude << 13) + (size < 0x7c00 ? 0x38000000u : 0x70000000u);
  return math::float_of(sign | (size < 0x0400 ? math::bits_of(subnormal) : rebiased));
}
template <class To>
To to_small(float value);
template <>
inline Half to_small(float value) {
  // magnitudes are compared as signed integers: every instruction set has this comparison for
  // vectors
  const uint32_t u = math::bits_of(value), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  const int32_t size = static_cast<int32_t>(magnitude);
  const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // below 2^-14, adding 1/2 rounds to the places of a subnormal: the last place of 1/2 is the
  // smallest subnormal
  const uint32_t subnormal = math::bits_of(math::float_of(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t finite = size < 0x38800000 ? subnormal : normal;
  const uint32_t rest = size > 0x7f800000 ? nan : 0x7c00u;
  Half h;
  h.bits = static_cast<uint16_t>(sign | (size < 0x477ff000 ? finite : rest));
  return h;
}
inline float to_float(BFloat16 h) { return math::float_of(static_cast<uint32_t>(h.bits) << 16); }
template <>
inline BFloat16 to_small(float value) {
  const uint32_t u = math::bits_of(value), rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const bool nan = static_cast<int32_t>(u & 0x7fffffffu) > 0x7f800000;
  BFloat16 h;
  h.bits = static_cast<uint16_t>(nan ? (u >> 16) | 0x40u : rounded);
  return h;
}

}  // namespace taper::portable
