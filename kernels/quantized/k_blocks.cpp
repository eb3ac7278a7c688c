// The K formats: 256 elements, in parts of 16 or 32 whose scales are small integers.
#include "taper/kernels/quantized/blocks.h"

namespace taper::quantized::internal {

// Twelve bytes hold eight scales and eight offsets of six bits.
void six_bits(const std::byte* bytes, int i, int* scale, int* offset) {
  if (i < 4) {
    *scale = byte_at(bytes, i) & 63, *offset = byte_at(bytes, i + 4) & 63;
    return;
  }
  const int low = byte_at(bytes, i + 4);
  *scale = (low & 15) | (byte_at(bytes, i - 4) >> 6 << 4);
  *offset = low >> 4 | (byte_at(bytes, i) >> 6 << 4);
}

namespace {

// Scales and offsets of the two halves of a unit, as small integers.
void set_halves(Unit& to, float d, const int* scales, float d_offset, const int* offsets) {
  for (int h = 0; h < 2; ++h) {
    to.scale[h] = d * static_cast<float>(scales[h]);
    to.offset[h] = -(d_offset * static_cast<float>(offsets[h]));
  }
}
constexpr int none[2] = {};

// Bytes 32 i to 32 i + 31 hold two bits of four units: of unit 4 i in the lowest bits.
int two_bits(const std::byte* bytes, int unit, int k) {
  return byte_at(bytes, unit / 4 * 32 + k) >> unit % 4 * 2 & 3;
}

void q2_k(const std::byte* block, int unit, Unit& to) {
  for (int k = 0; k < unit_elements; ++k)
    to.value[k] = static_cast<int8_t>(two_bits(block + 16, unit, k));
  int scales[2], offsets[2];
  for (int h = 0; h < 2; ++h) {
    const int both = byte_at(block, 2 * unit + h);
    scales[h] = both & 15, offsets[h] = both >> 4;
  }
  set_halves(to, half_at(block, 80), scales, half_at(block, 82), offsets);
}

// Bit `unit` of byte k: 0 takes 4 away. The scales have six bits: four of them in the first eight
// bytes, two in the last four.
void q3_k(const std::byte* block, int unit, Unit& to) {
  const std::byte *scale_bytes = block + 96, *low = block + 32;
  for (int k = 0; k < unit_elements; ++k) {
    const int is_high = byte_at(block, k) >> unit & 1;
    to.value[k] = static_cast<int8_t>(two_bits(low, unit, k) - (is_high ? 0 : 4));
  }
  int scales[2];
  for (int h = 0; h < 2; ++h) {
    const int i = 2 * unit + h;
    const int four = byte_at(scale_bytes, i % 8) >> i / 8 * 4 & 15,
              two = byte_at(scale_bytes, 8 + i % 4) >> i / 4 * 2 & 3;
    scales[h] = (four | two << 4) - 32;
  }
  set_halves(to, half_at(block, 108), scales, 0, none);
}

// Bytes 32 i to 32 i + 31 hold unit 2 i in their lower halves, and unit 2 i + 1 in their upper
// ones.
int four_bits(const std::byte* bytes, int unit, int k) {
  return byte_at(bytes, unit / 2 * 32 + k) >> unit % 2 * 4 & 15;
}
void set_six_bits(const std::byte* block, int unit, Unit& to) {
  int scale = 0, offset = 0;
  six_bits(block + 4, unit, &scale, &offset);
  set_scales(to, half_at(block, 0) * static_cast<float>(scale),
             -(half_at(block, 2) * static_cast<float>(offset)));
}
void q4_k(const std::byte* block, int unit, Unit& to) {
  for (int k = 0; k < unit_elements; ++k)
    to.value[k] = static_cast<int8_t>(four_bits(block + 16, unit, k));
  set_six_bits(block, unit, to);
}
void q5_k(const std::byte* block, int unit, Unit& to) {
  for (int k = 0; k < unit_elements; ++k) {
    const int high = byte_at(block, 16 + k) >> unit & 1;
    to.value[k] = static_cast<int8_t>(four_bits(block + 48, unit, k) | high << 4);
  }
  set_six_bits(block, unit, to);
}

// Each half of a block has 64 bytes of four low bits: units 0 and 1 in their lower halves, 2 and 3
// in their upper halves. 32 bytes have the two high bits of all four.
void q6_k(const std::byte* block, int unit, Unit& to) {
  const std::byte *low = block + unit / 4 * 64 + unit % 2 * 32, *high = block + 128;
  const int shift = unit % 4 / 2 * 4;
  for (int k = 0; k < unit_elements; ++k) {
    const int q = (byte_at(low, k) >> shift & 15) | two_bits(high, unit, k) << 4;
    to.value[k] = static_cast<int8_t>(q - 32);
  }
  const int scales[2] = {load_at<int8_t>(block, 192 + 2 * unit),
                         load_at<int8_t>(block, 193 + 2 * unit)};
  set_halves(to, half_at(block, 208), scales, 0, none);
}

}  // namespace

Decoder k_decoder(Layout layout) {
  switch (layout) {
    case Layout::q2_k:
      return q2_k;
    case Layout::q3_k:
      return q3_k;
    case Layout::q4_k:
      return q4_k;
    case Layout::q5_k:
      return q5_k;
    case Layout::q6_k:
      return q6_k;
    default:
      return nullptr;
  }
}

}  // namespace taper::quantized::internal
