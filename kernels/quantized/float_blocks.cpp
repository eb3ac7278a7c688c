// Formats whose elements are no integers: NF4, and the MX formats of 6 and 8 bits.
#include "taper/kernels/quantized/blocks.h"
#include "taper/kernels/quantized/float_levels.h"

namespace taper::quantized::internal {
namespace {

// 64 elements: f16 scale, and then 16 bytes of nibbles for each unit.
void nf4(const std::byte* block, int unit, FloatUnit& to) {
  const std::byte* nibbles = block + 2 + 16 * unit;
  for (int j = 0; j < 16; ++j) {
    const int b = byte_at(nibbles, j);
    to.value[j] = nf4_levels[b & 15], to.value[j + 16] = nf4_levels[b >> 4];
  }
  to.scale = half_at(block, 0);
}

// Four bits of each element as in q4_0. Eight bytes hold the two high bits: byte k of elements k,
// k + 8, k + 16 and k + 24.
template <class Float>
void mxfp6(const std::byte* block, int, FloatUnit& to) {
  const std::byte *low = block + 1, *high = block + 17;
  for (int k = 0; k < unit_elements; ++k)
    to.value[k] = Float::of_bits((byte_at(low, k % 16) >> k / 16 * 4 & 15) |
                                 (byte_at(high, k % 8) >> k / 8 * 2 & 3) << 4);
  to.scale = power_of_two(byte_at(block, 0));
}

template <class Float>
void mxfp8(const std::byte* block, int, FloatUnit& to) {
  for (int k = 0; k < unit_elements; ++k) {
    Float x;
    x.bits = byte_at(block, 1 + k);
    to.value[k] = x;
  }
  to.scale = power_of_two(byte_at(block, 0));
}

}  // namespace

FloatDecoder float_decoder(Layout layout) {
  switch (layout) {
    case Layout::nf4:
      return nf4;
    case Layout::mxfp6_e2m3:
      return mxfp6<Float6E2M3>;
    case Layout::mxfp6_e3m2:
      return mxfp6<Float6E3M2>;
    case Layout::mxfp8_e4m3:
      return mxfp8<Float8E4M3>;
    default:  // mxfp8_e5m2
      return mxfp8<Float8E5M2>;
  }
}

}  // namespace taper::quantized::internal
