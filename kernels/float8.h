// Conversions between f32 and the floats of 8 bits. They are storage: arithmetic is done in float.
// Device code.
//
// The formats are those of the OCP 8-bit Floating Point Specification (revision 1.0). Conversions
// have neither branches nor calls, so loops over them vectorise.
#pragma once
#include <cstdint>
#include <cstring>

#include "taper/runtime/core/dtype.h"

namespace taper {

constexpr bool is_float8(DType d) { return d == DType::f8_e4m3fn || d == DType::f8_e5m2; }
/// u16, u32, u64: integers without arithmetic.
constexpr bool is_wide_unsigned(DType d) { return d >= DType::u16 && d <= DType::u64; }

namespace internal {

inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
inline float float_of_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

/// A sign, an exponent with this bias, and a mantissa of `places` bits.
template <int places, int bias>
struct Float8Format {
  static constexpr int cut = 23 - places;  ///< bits that an f32 has beyond
  static constexpr uint32_t offset = static_cast<uint32_t>(127 - bias) << 23;

  /// The bits of a magnitude of f32, which is less than 2^16, rounded to nearest even.
  static uint32_t rounded(uint32_t magnitude) {
    // Below the smallest normal number, adding `anchor` rounds to the places of a subnormal: the
    // last place of `anchor` is the smallest subnormal.
    constexpr uint32_t anchor = static_cast<uint32_t>(127 + 1 - bias - places + 23) << 23;
    const uint32_t subnormal =
        bits_of_float(float_of_bits(magnitude) + float_of_bits(anchor)) - anchor;
    const uint32_t half = (1u << (cut - 1)) - 1 + ((magnitude >> cut) & 1u);
    const uint32_t normal = (magnitude - offset + half) >> cut;
    return magnitude < offset + (1u << 23) ? subnormal : normal;
  }
  /// The bits of the magnitude in f32, if it is finite.
  static uint32_t widened(uint32_t magnitude) {
    constexpr uint32_t unit = static_cast<uint32_t>(127 + 1 - bias - places) << 23;
    const float subnormal =
        static_cast<float>(static_cast<int32_t>(magnitude)) * float_of_bits(unit);
    return magnitude < (1u << places) ? bits_of_float(subnormal) : (magnitude << cut) + offset;
  }
};

}  // namespace internal

/// f8_e4m3fn: from 2^-9 to 448, NaN, no infinity. What is larger becomes 448, infinities too, as in
/// PyTorch.
struct Float8E4M3 {
  uint8_t bits;

  Float8E4M3() = default;
  explicit Float8E4M3(float value) {
    const uint32_t u = internal::bits_of_float(value), magnitude = u & 0x7fffffffu;
    const uint32_t within = magnitude < largest ? magnitude : largest;
    const uint32_t number = Format::rounded(within);
    bits = static_cast<uint8_t>(((u >> 24) & 0x80u) | (magnitude > infinity ? 0x7fu : number));
  }
  operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24, magnitude = bits & 0x7fu;
    return internal::float_of_bits(sign |
                                   (magnitude == 0x7fu ? 0x7ff00000u : Format::widened(magnitude)));
  }

 private:
  using Format = internal::Float8Format<3, 7>;
  static constexpr uint32_t largest = 0x43e00000u, infinity = 0x7f800000u;  // 448
};

/// f8_e5m2, the upper half of an f16: from 2^-16 to 57344, infinities, NaN.
struct Float8E5M2 {
  uint8_t bits;

  Float8E5M2() = default;
  explicit Float8E5M2(float value) {
    const uint32_t u = internal::bits_of_float(value), magnitude = u & 0x7fffffffu;
    const uint32_t within = magnitude < too_large ? magnitude : too_large;
    const uint32_t number = Format::rounded(within);  // 0x7c, infinity, for `too_large`
    bits = static_cast<uint8_t>(((u >> 24) & 0x80u) | (magnitude > infinity ? 0x7fu : number));
  }
  operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24, magnitude = bits & 0x7fu;
    const uint32_t rest = magnitude == 0x7cu ? infinity : 0x7fc00000u | (magnitude << 21);
    return internal::float_of_bits(sign | (magnitude < 0x7cu ? Format::widened(magnitude) : rest));
  }

 private:
  using Format = internal::Float8Format<2, 15>;
  static constexpr uint32_t too_large = 0x47700000u, infinity = 0x7f800000u;  // 61440 rounds up
};

}  // namespace taper
