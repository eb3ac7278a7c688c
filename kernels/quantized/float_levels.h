// The numbers that elements of blocks without integers may be, before they are multiplied with a
// scale. Device code.
#pragma once
#include "taper/kernels/float8.h"

namespace taper::quantized {

/// NF4: the quantiles of a normal distribution, with an exact 0. T. Dettmers and others, "QLoRA:
/// Efficient Finetuning of Quantized LLMs", arXiv:2305.14314, appendix E.
inline constexpr float nf4_levels[16] = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

/// A finite float: a sign, an exponent with this bias, and a mantissa of `places` bits. OCP
/// Microscaling Formats (MX) specification, version 1.0.
template <int bits_, int places, int bias>
struct SmallFloat {
  static constexpr unsigned sign = 1u << (bits_ - 1), magnitudes = sign - 1;

  uint8_t bits;

  static SmallFloat of_bits(int bits) {
    SmallFloat x;
    x.bits = static_cast<uint8_t>(bits);
    return x;
  }
  SmallFloat() = default;
  /// Rounds to nearest even. What is larger becomes the largest number.
  explicit SmallFloat(float value) {
    const uint32_t u = taper::internal::bits_of_float(value), magnitude = u & 0x7fffffffu,
                   most = Format::widened(magnitudes);
    const uint32_t number = Format::rounded(magnitude < most ? magnitude : most);
    bits = static_cast<uint8_t>(number | (u >> 31 != 0 ? sign : 0));
  }
  operator float() const {
    const uint32_t negative = (bits & sign) != 0 ? 0x80000000u : 0;
    return taper::internal::float_of_bits(negative | Format::widened(bits & magnitudes));
  }

 private:
  using Format = taper::internal::Float8Format<places, bias>;
};
using Float4E2M1 = SmallFloat<4, 1, 1>;
using Float6E2M3 = SmallFloat<6, 3, 1>;
using Float6E3M2 = SmallFloat<6, 2, 3>;

}  // namespace taper::quantized
