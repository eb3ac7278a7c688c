// Weights in blocks: a few numbers with a common scale. Most formats are those of ggml, as GGUF
// files hold them (docs/format.md, "Blocks").
#pragma once
#include <cstring>

#include "taper/runtime/core/layout.h"
#include "taper/runtime/core/tensor_ref.h"

namespace taper::quantized {

inline constexpr int unit_elements = 32;

/// 32 neighbours along a row, as every format of blocks of integers gives them:
///
///   element[k] = scale[k / 16] * value[k] + offset[k / 16]
///
/// Where a format has no offsets, they are 0 and are not added.
struct Unit {
  int8_t value[unit_elements];
  float scale[2], offset[2];
};

/// The same of a format without integers: element[k] = scale * value[k].
struct FloatUnit {
  float value[unit_elements];
  float scale;
};

/// What all units of a format of integers have in common.
struct BlockTraits {
  bool has_offset;
  bool has_halves;  ///< the two scales, and the two offsets, of a unit may differ
};
BlockTraits traits_of(Layout layout);

/// A matrix (rows, depth) in blocks along its rows, or in panels of them. `depth` is a multiple of
/// the block's elements.
struct BlockMatrix {
  const std::byte* data;
  Layout layout;
  index_t rows, depth;

  BlockMatrix(const std::byte* data, Layout layout, index_t rows, index_t depth)
      : data(data), layout(layout), rows(rows), depth(depth) {}
  /// Of `t`, whose first dimensions are the rows. A vector is one row.
  explicit BlockMatrix(const TensorRef& t);

  index_t units() const { return depth / unit_elements; }
  /// Decodes elements [32 unit, 32 unit + 32) of a row of integers.
  void decode(index_t row, index_t unit, Unit& to) const;
  /// The same of a format without integers.
  void decode(index_t row, index_t unit, FloatUnit& to) const;
  /// Writes the elements of a row. The values are those of ggml, bit for bit.
  void row(index_t row, float* to) const;

  index_t units_of_block() const { return block_of(layout).elements / unit_elements; }
  /// The block of a unit. For blocks that are not in panels.
  const std::byte* block(index_t row, index_t unit) const;
};

/// Writes `count` elements of blocks that lie one behind the other. `count` is a multiple of the
/// block's elements, and `layout` one of blocks, not of panels.
void dequantize(Layout layout, const std::byte* blocks, index_t count, float* to);

namespace internal {

/// Decodes unit `unit` of a block.
using Decoder = void (*)(const std::byte* block, int unit, Unit& to);
/// nullptr: the layout is none of those in the file.
Decoder plain_decoder(Layout layout);
Decoder k_decoder(Layout layout);
Decoder grid_decoder(Layout layout);
using FloatDecoder = void (*)(const std::byte* block, int unit, FloatUnit& to);
/// For a layout without integers.
FloatDecoder float_decoder(Layout layout);
/// Scale and offset `i` of a block of q4_k or q5_k, whose bytes for both begin at `bytes`.
void six_bits(const std::byte* bytes, int i, int* scale, int* offset);

inline uint8_t byte_at(const std::byte* from, int i) { return static_cast<uint8_t>(from[i]); }
/// Little-endian integers, which need no alignment.
template <class T>
T load_at(const std::byte* from, int offset = 0) {
  T value;
  std::memcpy(&value, from + offset, sizeof value);
  return value;
}
/// The f16 at `offset`.
float half_at(const std::byte* from, int offset);

/// The sixteen levels of iq4_nl and iq4_xs, which are denser near zero.
inline constexpr int8_t iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
/// Twice the values of e2m1.
inline constexpr int8_t e2m1_levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

inline float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
/// Half of 2^(e - 127): the levels of e2m1 are twice their value.
inline float half_power(uint32_t e) { return from_bits(e < 2 ? 0x00200000u << e : (e - 1) << 23); }
/// 2^(e - 127), and NaN for the highest e. 2^-127 is a subnormal number.
inline float power_of_two(uint32_t e) {
  return from_bits(e == 0 ? 0x00400000u : e == 255 ? 0x7fc00000u : e << 23);
}

inline void set_scales(Unit& to, float scale, float offset = 0) {
  to.scale[0] = to.scale[1] = scale, to.offset[0] = to.offset[1] = offset;
}

}  // namespace internal
}  // namespace taper::quantized
