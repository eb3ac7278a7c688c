#include "taper/runtime/core/dtype.h"

namespace taper {

const char* name_of(DType d) {
  static constexpr const char* names[dtype_count] = {
      "bool", "u8",  "i8",  "i16",       "i32",     "i64", "f16", "bf16",
      "f32",  "f64", "c64", "f8_e4m3fn", "f8_e5m2", "u16", "u32", "u64"};
  return is_valid(d) ? names[static_cast<uint8_t>(d)] : "?";
}

Half::Half(float value) {
  uint32_t u;
  std::memcpy(&u, &value, 4);
  const uint32_t sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // NaN stays quiet
    bits = static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  } else if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
    bits = static_cast<uint16_t>(sign | 0x7c00u);
  } else if (magnitude >= 0x38800000u) {  // normal: rebias the exponent, round to nearest even
    bits = static_cast<uint16_t>(
        sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
  } else if (magnitude < 0x33000000u) {  // below half of the smallest subnormal
    bits = static_cast<uint16_t>(sign);
  } else {  // subnormal: shift the mantissa with its hidden bit, round to nearest even
    const uint32_t shift = 126u - (magnitude >> 23), mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t half = 1u << (shift - 1u), rest = mantissa & ((1u << shift) - 1u);
    uint32_t m = mantissa >> shift;
    if (rest > half || (rest == half && (m & 1u))) ++m;
    bits = static_cast<uint16_t>(sign | m);
  }
}

Half::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu, u;
  if (exponent == 31) {
    u = sign | 0x7f800000u | (mantissa << 13);
  } else if (exponent != 0) {
    u = sign | ((exponent + 112u) << 23) | (mantissa << 13);
  } else if (mantissa == 0) {
    u = sign;
  } else {  // subnormal: normalise
    exponent = 113;
    while (!(mantissa & 0x400u)) mantissa <<= 1, --exponent;
    u = sign | (exponent << 23) | ((mantissa & 0x3ffu) << 13);
  }
  float value;
  std::memcpy(&value, &u, 4);
  return value;
}

}  // namespace taper
