// Writes weights in blocks, bit by bit. kernels/quantized/blocks.h reads them, and docs/format.md
// ("Blocks") describes the bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "taper/runtime/core/layout.h"

namespace taper::quantize {

/// The numbers that an element may become: scale * q + offset, where q is an integer of the format.
struct BlockGrid {
  float scale = 0, offset = 0;
};

/// What a layout of blocks can hold.
struct BlockFormat {
  Layout layout;
  int elements;         ///< of a block
  int bytes;            ///< of a block
  int shared;           ///< so many neighbours have one grid: 16 or 32
  int lowest, highest;  ///< of the integers
  bool has_offset;
  bool has_small_scales;  ///< scales are small integers, times one or two f16 of the block

  int grids() const { return elements / shared; }
};

/// nullptr: Taper reads this layout, but does not write it.
const BlockFormat* find_format(Layout layout);
/// The same by its name, such as "q4_1".
const BlockFormat* find_format(std::string_view name);
std::string name_of(const BlockFormat& format);
/// Names of all formats that can be written.
std::span<const char* const> format_names();

/// The most elements and grids of a block.
inline constexpr int most_elements = 256, most_grids = 16;

/// Writes the scales of a block as near to `wanted` as the format allows. `wanted` has a grid for
/// each `shared` elements. Offsets are ignored where the format has none.
void write_grids(const BlockFormat& format, std::span<const BlockGrid> wanted, std::byte* block);
/// The grids of a block, exactly as kernels decode them.
void read_grids(const BlockFormat& format, const std::byte* block, std::span<BlockGrid> grids);
/// Writes the integers of a block: one for each element, in [lowest, highest].
void write_values(const BlockFormat& format, std::span<const int8_t> values, std::byte* block);

/// The integer of a grid that is nearest to `w`.
inline int nearest(const BlockFormat& format, const BlockGrid& grid, float w) {
  if (grid.scale == 0) return 0;
  const float q = (w - grid.offset) / grid.scale;
  const float bounded = q < static_cast<float>(format.lowest) ? static_cast<float>(format.lowest)
                        : q > static_cast<float>(format.highest)
                            ? static_cast<float>(format.highest)
                            : q;
  constexpr float rounds = 12582912;  // 1.5 * 2^23: its sum with a small number is an integer
  return static_cast<int>(bounded + rounds - rounds);
}
inline float value_of(const BlockGrid& grid, int q) {
  return grid.scale * static_cast<float>(q) + grid.offset;
}

}  // namespace taper::quantize
