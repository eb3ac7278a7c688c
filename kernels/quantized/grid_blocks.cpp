// Formats that look up four or eight elements at a time in a grid: ggml's IQ1, IQ2 and IQ3.
#include "taper/kernels/quantized/blocks.h"
#include "taper/kernels/quantized/grids.h"

namespace taper::quantized::internal {
namespace {

constexpr int8_t iq2_levels[4] = {8, 25, 43, 0};  // the last one does not occur
constexpr int8_t iq3_xxs_levels[8] = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr int8_t iq3_s_levels[8] = {1, 3, 5, 7, 9, 11, 13, 15};

// Seven bits are the signs of eight elements. The eighth makes the number of minus signs even.
int eight_signs(unsigned seven) {
  unsigned parity = seven ^ seven >> 4;
  parity ^= parity >> 2, parity ^= parity >> 1;
  return static_cast<int>((seven & 127) | (parity & 1) << 7);
}
int8_t with_sign(int8_t level, int signs, int i) {
  return static_cast<int8_t>((signs >> i & 1) != 0 ? -level : level);
}
void eight(uint16_t cell, int signs, int8_t* to) {
  for (int i = 0; i < 8; ++i) to[i] = with_sign(iq2_levels[cell >> 2 * i & 3], signs, i);
}
void four(uint16_t cell, const int8_t* levels, int signs, int8_t* to) {
  for (int i = 0; i < 4; ++i) to[i] = with_sign(levels[cell >> 3 * i & 7], signs, i);
}
float half_steps(float d, unsigned scale, float factor) {
  return d * (0.5f + static_cast<float>(scale)) * factor;
}

// Of each 32 elements: four numbers of cells in one byte each, 4 times 7 signs, a scale of 4 bits.
void iq2_xxs(const std::byte* block, int unit, Unit& to) {
  const std::byte* at = block + 2 + 8 * unit;
  const auto rest = load_at<uint32_t>(at, 4);
  for (int c = 0; c < 4; ++c)
    eight(iq2_xxs_grid[byte_at(at, c)], eight_signs(rest >> 7 * c & 127), to.value + 8 * c);
  set_scales(to, half_steps(half_at(block, 0), rest >> 28, 0.25f));
}
// Of each 8 elements: nine bits of a cell and 7 signs.
void iq2_xs(const std::byte* block, int unit, Unit& to) {
  for (int c = 0; c < 4; ++c) {
    const unsigned both = load_at<uint16_t>(block, 2 + 8 * unit + 2 * c);
    eight(iq2_xs_grid[both & 511], eight_signs(both >> 9), to.value + 8 * c);
  }
  const unsigned scales = byte_at(block, 66 + unit);
  set_scales(to, 0);
  to.scale[0] = half_steps(half_at(block, 0), scales & 15, 0.25f);
  to.scale[1] = half_steps(half_at(block, 0), scales >> 4, 0.25f);
}
// Cells have ten bits: eight of them first, then all signs, and then two bits of each.
void iq2_s(const std::byte* block, int unit, Unit& to) {
  const int high = byte_at(block, 66 + unit);
  for (int c = 0; c < 4; ++c) {
    const int cell = byte_at(block, 2 + 4 * unit + c) | (high >> 2 * c & 3) << 8;
    eight(iq2_s_grid[cell], byte_at(block, 34 + 4 * unit + c), to.value + 8 * c);
  }
  const unsigned scales = byte_at(block, 74 + unit);
  set_scales(to, 0);
  to.scale[0] = half_steps(half_at(block, 0), scales & 15, 0.25f);
  to.scale[1] = half_steps(half_at(block, 0), scales >> 4, 0.25f);
}
void iq3_xxs(const std::byte* block, int unit, Unit& to) {
  const auto rest = load_at<uint32_t>(block, 66 + 4 * unit);
  for (int c = 0; c < 8; ++c) {
    const int signs = eight_signs(rest >> 7 * (c / 2) & 127) >> c % 2 * 4;
    four(iq3_xxs_grid[byte_at(block, 2 + 8 * unit + c)], iq3_xxs_levels, signs, to.value + 4 * c);
  }
  set_scales(to, half_steps(half_at(block, 0), rest >> 28, 0.5f));
}
// Cells have nine bits: eight of them first, then the ninth bits, all signs and the scales.
void iq3_s(const std::byte* block, int unit, Unit& to) {
  const int high = byte_at(block, 66 + unit);
  for (int c = 0; c < 8; ++c) {
    const int cell = byte_at(block, 2 + 8 * unit + c) | (high >> c & 1) << 8;
    const int signs = byte_at(block, 74 + 4 * unit + c / 2) >> c % 2 * 4;
    four(iq3_s_grid[cell], iq3_s_levels, signs, to.value + 4 * c);
  }
  const int scale = byte_at(block, 106 + unit / 2) >> unit % 2 * 4 & 15;
  set_scales(to, half_at(block, 0) * static_cast<float>(1 + 2 * scale));
}

// Elements are -1, 0 or 1, and an eighth is added to or taken from all of a part. So eight times an
// element is an integer.
void eight_of_three(uint16_t cell, bool is_minus, int8_t* to) {
  for (int i = 0; i < 8; ++i)
    to[i] = static_cast<int8_t>(8 * ((cell >> 2 * i & 3) - 1) + (is_minus ? -1 : 1));
}
void iq1_s(const std::byte* block, int unit, Unit& to) {
  const unsigned rest = load_at<uint16_t>(block, 34 + 2 * unit);
  for (int c = 0; c < 4; ++c) {
    const unsigned cell = byte_at(block, 2 + 4 * unit + c) | (rest >> 3 * c & 7) << 8;
    eight_of_three(iq1_grid[cell], rest >> 15 != 0, to.value + 8 * c);
  }
  set_scales(to, half_at(block, 0) * static_cast<float>(2 * (rest >> 12 & 7) + 1) * 0.125f);
}
// The scales of sixteen elements have three bits. The highest four bits of their four words are an
// f16.
void iq1_m(const std::byte* block, int unit, Unit& to) {
  for (int c = 0; c < 4; ++c) {
    const int rest = byte_at(block, 32 + 2 * unit + c / 2) >> c % 2 * 4;
    const int cell = byte_at(block, 4 * unit + c) | (rest & 7) << 8;
    eight_of_three(iq1_grid[cell], (rest & 8) != 0, to.value + 8 * c);
  }
  unsigned word[4], bits = 0;
  for (int i = 0; i < 4; ++i) {
    word[i] = load_at<uint16_t>(block, 48 + 2 * i);
    bits |= word[i] >> 12 << 4 * i;
  }
  const auto d16 = static_cast<uint16_t>(bits);
  std::byte bytes[2];
  std::memcpy(bytes, &d16, sizeof bytes);
  set_scales(to, 0);
  for (int h = 0; h < 2; ++h) {
    const unsigned scale = word[unit / 2] >> (6 * (unit % 2) + 3 * h) & 7;
    to.scale[h] = half_at(bytes, 0) * static_cast<float>(2 * scale + 1) * 0.125f;
  }
}

}  // namespace

Decoder grid_decoder(Layout layout) {
  switch (layout) {
    case Layout::iq2_xxs:
      return iq2_xxs;
    case Layout::iq2_xs:
      return iq2_xs;
    case Layout::iq2_s:
      return iq2_s;
    case Layout::iq3_xxs:
      return iq3_xxs;
    case Layout::iq3_s:
      return iq3_s;
    case Layout::iq1_s:
      return iq1_s;
    case Layout::iq1_m:
      return iq1_m;
    default:
      return nullptr;
  }
}

}  // namespace taper::quantized::internal
