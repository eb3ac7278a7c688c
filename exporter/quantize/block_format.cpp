#include "taper/exporter/quantize/block_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "taper/kernels/quantized/blocks.h"
#include "taper/runtime/core/dtype.h"

namespace taper::quantize {
namespace {

constexpr BlockFormat format(Layout layout, int shared, int lowest, int highest, bool has_offset,
                             Scales scales, const FloatLevels* levels = nullptr,
                             int zero_steps = 0) {
  const BlockSize size = block_of(layout);
  return {layout,  size.elements, size.bytes, shared, lowest,
          highest, has_offset,    scales,     levels, zero_steps};
}
constexpr BlockFormat mx_format(Layout layout, int highest, const FloatLevels& levels) {
  return format(layout, 32, 0, highest, false, Scales::power_of_two, &levels);
}
// in the order of `names`
constexpr BlockFormat formats[] = {format(Layout::q4_0, 32, -8, 7, false, Scales::half),
                                   format(Layout::q4_1, 32, 0, 15, true, Scales::half),
                                   format(Layout::q5_0, 32, -16, 15, false, Scales::half),
                                   format(Layout::q5_1, 32, 0, 31, true, Scales::half),
                                   format(Layout::q8_0, 32, -127, 127, false, Scales::half),
                                   format(Layout::q2_k, 16, 0, 3, true, Scales::small_integers),
                                   format(Layout::q3_k, 16, -4, 3, false, Scales::small_integers),
                                   format(Layout::q4_k, 32, 0, 15, true, Scales::small_integers),
                                   format(Layout::q5_k, 32, 0, 31, true, Scales::small_integers),
                                   format(Layout::q6_k, 16, -32, 31, false, Scales::small_integers),
                                   format(Layout::nf4, 64, 0, 15, false, Scales::half, &nf4_levels),
                                   mx_format(Layout::mxfp4, 7, doubled_e2m1_levels),
                                   mx_format(Layout::mxfp6_e2m3, 31, e2m3_levels),
                                   mx_format(Layout::mxfp6_e3m2, 31, e3m2_levels),
                                   mx_format(Layout::mxfp8_e4m3, 126, e4m3_levels),
                                   mx_format(Layout::mxfp8_e5m2, 123, e5m2_levels),
                                   format(Layout::q2_z, 32, 0, 3, true, Scales::half, nullptr, 4),
                                   format(Layout::q3_z, 32, 0, 7, true, Scales::half, nullptr, 2)};
constexpr const char* names[] = {"q4_0",       "q4_1",  "q5_0",       "q5_1",       "q8_0",
                                 "q2_k",       "q3_k",  "q4_k",       "q5_k",       "q6_k",
                                 "nf4",        "mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3",
                                 "mxfp8_e5m2", "q2_z",  "q3_z"};
static_assert(std::size(formats) == std::size(names), "one for each format");

void put_byte(std::byte* block, int at, int value) {
  block[at] = static_cast<std::byte>(value & 255);
}
void add_bits(std::byte* block, int at, int bits) {
  block[at] |= static_cast<std::byte>(bits & 255);
}

constexpr float largest_half = 65504;
/// Stores `value` as f16, saturated, and returns what is stored.
float put_half(std::byte* block, int at, float value) {
  const Half half(std::clamp(value, -largest_half, largest_half));
  std::memcpy(block + at, &half, sizeof half);
  return static_cast<float>(half);
}

/// `value / unit`, rounded, in [lowest, highest].
int integer_of(float value, float unit, int lowest, int highest) {
  if (unit == 0) return 0;
  const float quotient = std::nearbyint(value / unit);  // it may be no int
  return static_cast<int>(
      std::clamp(quotient, static_cast<float>(lowest), static_cast<float>(highest)));
}

// ---- scales ----

// The scales of a block as integers: `unit` is the f16 that they are multiplied with.
struct SmallScales {
  float unit;
  int lowest, highest;
};
/// Magnitudes 0 … highest.
SmallScales put_positive_unit(std::byte* block, int at, float largest, int highest) {
  return {put_half(block, at, largest / static_cast<float>(highest)), 0, highest};
}
/// Integers lowest … -lowest - 1. The scale of the largest magnitude becomes `lowest`, so that all
/// others fit.
SmallScales put_signed_unit(std::byte* block, int at, std::span<const BlockGrid> wanted,
                            int lowest) {
  float largest = 0;
  for (const BlockGrid& g : wanted)
    if (std::fabs(g.scale) > std::fabs(largest)) largest = g.scale;
  return {put_half(block, at, largest / static_cast<float>(lowest)), lowest, -lowest - 1};
}
int scale_of(const SmallScales& s, const BlockGrid& g) {
  return integer_of(g.scale, s.unit, s.lowest, s.highest);
}
/// Offsets are subtracted, and so their integers are not negative.
int offset_of(const SmallScales& s, const BlockGrid& g) {
  return integer_of(-g.offset, s.unit, s.lowest, s.highest);
}

struct ScalesAndOffsets {
  SmallScales scales, offsets;
};
ScalesAndOffsets put_units(std::byte* block, int at, std::span<const BlockGrid> wanted,
                           int highest) {
  float scale = 0, offset = 0;
  for (const BlockGrid& g : wanted)
    scale = std::max(scale, g.scale), offset = std::max(offset, -g.offset);
  return {put_positive_unit(block, at, scale, highest),
          put_positive_unit(block, at + 2, offset, highest)};
}

void write_q2_k(std::span<const BlockGrid> wanted, std::byte* block) {
  const ScalesAndOffsets s = put_units(block, 80, wanted, 15);
  for (int i = 0; i < 16; ++i)
    put_byte(block, i, scale_of(s.scales, wanted[i]) | offset_of(s.offsets, wanted[i]) << 4);
}

// Four bits of a scale lie in the first eight of twelve bytes, and two in the last four.
void write_q3_k(std::span<const BlockGrid> wanted, std::byte* block) {
  const SmallScales s = put_signed_unit(block, 108, wanted, -32);
  std::byte* bytes = block + 96;
  std::memset(bytes, 0, 12);
  for (int i = 0; i < 16; ++i) {
    const int six = scale_of(s, wanted[i]) + 32;
    add_bits(bytes, i % 8, (six & 15) << i / 8 * 4);
    add_bits(bytes, 8 + i % 4, six >> 4 << i / 4 * 2);
  }
}

// Twelve bytes hold eight scales and eight offsets of six bits, as `six_bits` reads them.
void write_q4_k(std::span<const BlockGrid> wanted, std::byte* block) {
  const ScalesAndOffsets s = put_units(block, 0, wanted, 63);
  std::byte* bytes = block + 4;
  std::memset(bytes, 0, 12);
  for (int i = 0; i < 8; ++i) {
    const int scale = scale_of(s.scales, wanted[i]), offset = offset_of(s.offsets, wanted[i]);
    if (i < 4) {
      add_bits(bytes, i, scale), add_bits(bytes, i + 4, offset);
    } else {
      add_bits(bytes, i + 4, (scale & 15) | (offset & 15) << 4);
      add_bits(bytes, i - 4, scale >> 4 << 6), add_bits(bytes, i, offset >> 4 << 6);
    }
  }
}

void write_q6_k(std::span<const BlockGrid> wanted, std::byte* block) {
  const SmallScales s = put_signed_unit(block, 208, wanted, -128);
  for (int i = 0; i < 16; ++i) put_byte(block, 192 + i, scale_of(s, wanted[i]));
}

/// The exponent of a power of two, from 2^-127 on. mxfp4 has doubled levels.
void put_exponent(const BlockFormat& format, float scale, std::byte* block) {
  constexpr int bias = 127;
  const int doubled = format.layout == Layout::mxfp4 ? 1 : 0;
  const int exponent = scale > 0 ? std::ilogb(scale) : -bias;
  put_byte(block, 0, std::clamp(exponent + bias + doubled, 0, 2 * bias));
}
// An f16 without its lowest four bits, which hold the zero point.
struct ZeroPoint {
  uint16_t scale_bits;
  int zero;
};
float step_of(const ZeroPoint& z) {
  Half step;
  std::memcpy(&step, &z.scale_bits, sizeof step);
  return static_cast<float>(step);
}
BlockGrid grid_of(const BlockFormat& format, const ZeroPoint& z) {
  const float step = step_of(z);
  return {step * static_cast<float>(format.zero_steps), -step * static_cast<float>(z.zero)};
}
ZeroPoint zero_point_of(const BlockFormat& format, const BlockGrid& wanted) {
  const auto steps = static_cast<float>(format.zero_steps);
  const float step = std::clamp(wanted.scale / steps, 0.0f, largest_half);
  constexpr int largest_bits = 0x7bf0;  // of the largest number whose lowest four bits are zero
  const int bits = std::min((Half(step).bits + 8) & 0xfff0, largest_bits);
  ZeroPoint z{static_cast<uint16_t>(bits), 0};
  z.zero = integer_of(-wanted.offset, step_of(z), 0, 15);
  return z;
}
void write_zero_point(const BlockFormat& format, const BlockGrid& wanted, std::byte* block) {
  const ZeroPoint z = zero_point_of(format, wanted);
  const auto bits = static_cast<uint16_t>(z.scale_bits | z.zero);
  std::memcpy(block, &bits, sizeof bits);
}

// ---- integers ----

// Sixteen bytes hold elements 0 to 15 in their lower halves, and 16 to 31 in their upper halves.
void put_nibbles(std::span<const int8_t> values, int less, std::byte* bytes) {
  for (int j = 0; j < 16; ++j)
    put_byte(bytes, j, ((values[j] - less) & 15) | ((values[j + 16] - less) & 15) << 4);
}
// Four bytes hold the fifth bits of all elements.
void put_fifth_bits(std::span<const int8_t> values, int less, std::byte* bytes) {
  uint32_t high = 0;
  for (int k = 0; k < 32; ++k) high |= static_cast<uint32_t>((values[k] - less) >> 4 & 1) << k;
  std::memcpy(bytes, &high, sizeof high);
}
// Byte k of eight holds two bits of elements k, k + 8, k + 16 and k + 24.
void put_high_bits_of_six(std::span<const int8_t> codes, std::byte* bytes) {
  std::memset(bytes, 0, 8);
  for (int k = 0; k < 32; ++k) add_bits(bytes, k % 8, (codes[k] >> 4 & 3) << k / 8 * 2);
}
// Byte j has two bits of elements j, j + 8, j + 16 and j + 24. Four more bytes have the third bits.
void put_few_bits(std::span<const int8_t> values, bool has_third, std::byte* bytes) {
  std::memset(bytes, 0, has_third ? 12 : 8);
  for (int k = 0; k < 32; ++k) {
    add_bits(bytes, k % 8, (values[k] & 3) << k / 8 * 2);
    if (has_third) add_bits(bytes, 8 + k / 8, values[k] >> 2 << k % 8);
  }
}
// Bytes 32 i to 32 i + 31 hold two bits of four units of 32 elements.
void put_two_bits(std::span<const int8_t> values, int less, int shift, std::byte* bytes) {
  std::memset(bytes, 0, 64);
  for (int e = 0; e < 256; ++e) {
    const int unit = e / 32;
    add_bits(bytes, unit / 4 * 32 + e % 32, ((values[e] - less) >> shift & 3) << unit % 4 * 2);
  }
}
// Bytes 32 i to 32 i + 31 hold unit 2 i in their lower halves, and unit 2 i + 1 in their upper
// ones.
void put_four_bits(std::span<const int8_t> values, std::byte* bytes) {
  std::memset(bytes, 0, 128);
  for (int e = 0; e < 256; ++e) {
    const int unit = e / 32;
    add_bits(bytes, unit / 2 * 32 + e % 32, (values[e] & 15) << unit % 2 * 4);
  }
}
// Bit `unit` of byte k is bit `bit` of element k of the unit.
void put_one_bit(std::span<const int8_t> values, int less, int bit, std::byte* bytes) {
  std::memset(bytes, 0, 32);
  for (int e = 0; e < 256; ++e) add_bits(bytes, e % 32, ((values[e] - less) >> bit & 1) << e / 32);
}
// Each half of a block has 64 bytes of four low bits: units 0 and 1 in their lower halves, 2 and 3
// in their upper halves.
void put_low_bits_of_six(std::span<const int8_t> values, std::byte* bytes) {
  std::memset(bytes, 0, 128);
  for (int e = 0; e < 256; ++e) {
    const int unit = e / 32;
    add_bits(bytes, unit / 4 * 64 + unit % 2 * 32 + e % 32,
             ((values[e] + 32) & 15) << unit % 4 / 2 * 4);
  }
}

}  // namespace

const BlockFormat* find_format(Layout layout) {
  const auto* f = std::ranges::find(formats, layout, &BlockFormat::layout);
  return f == std::end(formats) ? nullptr : f;
}
const BlockFormat* find_format(std::string_view name) {
  const auto* n = std::ranges::find(names, name);
  return n == std::end(names) ? nullptr : &formats[n - names];
}
std::string name_of(const BlockFormat& format) {
  return names[std::ranges::find(formats, format.layout, &BlockFormat::layout) - formats];
}
std::span<const char* const> format_names() { return names; }

void write_grids(const BlockFormat& format, std::span<const BlockGrid> wanted, std::byte* block) {
  switch (format.layout) {
    case Layout::q2_k:
      return write_q2_k(wanted, block);
    case Layout::q3_k:
      return write_q3_k(wanted, block);
    case Layout::q4_k:
    case Layout::q5_k:
      return write_q4_k(wanted, block);
    case Layout::q6_k:
      return write_q6_k(wanted, block);
    case Layout::q2_z:
    case Layout::q3_z:
      return write_zero_point(format, wanted[0], block);
    default:
      if (format.scales == Scales::power_of_two)
        return put_exponent(format, wanted[0].scale, block);
      put_half(block, 0, wanted[0].scale);
      if (format.has_offset) put_half(block, 2, wanted[0].offset);
  }
}

BlockGrid stored_grid(const BlockFormat& format, const BlockGrid& wanted) {
  if (format.zero_steps == 0)
    return {static_cast<float>(Half(wanted.scale)), static_cast<float>(Half(wanted.offset))};
  return grid_of(format, zero_point_of(format, wanted));
}

void read_grids(const BlockFormat& format, const std::byte* block, std::span<BlockGrid> grids) {
  if (format.zero_steps > 0) {
    uint16_t bits;
    std::memcpy(&bits, block, sizeof bits);
    grids[0] = grid_of(format, {static_cast<uint16_t>(bits & 0xfff0), bits & 15});
    return;
  }
  const quantized::BlockMatrix one(block, format.layout, 1, format.elements);
  if (!holds_integers(format.layout)) {  // one scale for all
    quantized::FloatUnit unit;
    one.decode(0, 0, unit);
    grids[0] = {unit.scale, 0};
    return;
  }
  quantized::Unit unit;
  for (int g = 0; g < format.grids(); ++g) {
    const int first = g * format.shared;
    one.decode(0, first / quantized::unit_elements, unit);
    const int half = first % quantized::unit_elements / 16;
    grids[static_cast<size_t>(g)] = {unit.scale[half], format.has_offset ? unit.offset[half] : 0};
  }
}

void write_values(const BlockFormat& format, std::span<const int8_t> values, std::byte* block) {
  const int less = format.lowest;
  switch (format.layout) {
    case Layout::q4_0:
      return put_nibbles(values, less, block + 2);
    case Layout::q4_1:
      return put_nibbles(values, less, block + 4);
    case Layout::q5_0:
      return put_fifth_bits(values, less, block + 2), put_nibbles(values, less, block + 6);
    case Layout::q5_1:
      return put_fifth_bits(values, less, block + 4), put_nibbles(values, less, block + 8);
    case Layout::q8_0:
      std::memcpy(block + 2, values.data(), 32);
      return;
    case Layout::q2_k:
      return put_two_bits(values, less, 0, block + 16);
    case Layout::q3_k:
      return put_one_bit(values, less, 2, block), put_two_bits(values, less, 0, block + 32);
    case Layout::q4_k:
      return put_four_bits(values, block + 16);
    case Layout::q5_k:
      return put_one_bit(values, less, 4, block + 16), put_four_bits(values, block + 48);
    case Layout::nf4:
      return put_nibbles(values.first(32), less, block + 2),
             put_nibbles(values.subspan(32), less, block + 18);
    case Layout::mxfp4:
      return put_nibbles(values, less, block + 1);
    case Layout::mxfp6_e2m3:
    case Layout::mxfp6_e3m2:
      return put_nibbles(values, less, block + 1), put_high_bits_of_six(values, block + 17);
    case Layout::mxfp8_e4m3:
    case Layout::mxfp8_e5m2:
      std::memcpy(block + 1, values.data(), 32);
      return;
    case Layout::q2_z:
    case Layout::q3_z:
      return put_few_bits(values, format.layout == Layout::q3_z, block + 2);
    default:  // q6_k
      return put_low_bits_of_six(values, block), put_two_bits(values, less, 4, block + 128);
  }
}

}  // namespace taper::quantize
