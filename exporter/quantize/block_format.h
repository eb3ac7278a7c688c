// Writes weights in blocks, bit by bit. kernels/quantized/blocks.h reads them, and docs/format.md
// ("Blocks") describes the bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "taper/exporter/quantize/levels.h"
#include "taper/runtime/core/layout.h"

namespace taper::quantize {

/// The numbers that an element may become: scale * q + offset, where q is an integer of the format,
/// or one of its levels.
struct BlockGrid {
  float scale = 0, offset = 0;
};

enum class Scales : uint8_t {
  half,            ///< f16
  small_integers,  ///< times one or two f16 of the block
  power_of_two,    ///< an exponent
};

/// What a layout of blocks can hold.
struct BlockFormat {
  Layout layout;
  int elements;         ///< of a block
  int bytes;            ///< of a block
  int shared;           ///< so many neighbours have one grid
  int lowest, highest;  ///< of the integers, or of the codes of positive levels
  bool has_offset;
  Scales scales;
  const FloatLevels* levels;  ///< nullptr: codes are integers
  /// Steps of a zero point between two integers; 0: offsets are numbers of their own. Otherwise an
  /// offset is -z steps of the scale, with z of 0 … 15.
  int zero_steps = 0;

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
/// The grid that the block holds in place of this one. For formats without small scales.
BlockGrid stored_grid(const BlockFormat& format, const BlockGrid& wanted);
/// The grids of a block, exactly as kernels decode them.
void read_grids(const BlockFormat& format, const std::byte* block, std::span<BlockGrid> grids);
/// Writes the integers of a block: one for each element, in [lowest, highest]. Or the lowest eight
/// bits of codes.
void write_values(const BlockFormat& format, std::span<const int8_t> values, std::byte* block);

/// The integer of a grid that is nearest to `w`, or the code.
inline int nearest(const BlockFormat& format, const BlockGrid& grid, float w) {
  if (grid.scale == 0) return 0;
  const float q = (w - grid.offset) / grid.scale;
  if (format.levels != nullptr) return format.levels->nearest(q);
  const float bounded = q < static_cast<float>(format.lowest) ? static_cast<float>(format.lowest)
                        : q > static_cast<float>(format.highest)
                            ? static_cast<float>(format.highest)
                            : q;
  constexpr float rounds = 12582912;  // 1.5 * 2^23: its sum with a small number is an integer
  return static_cast<int>(bounded + rounds - rounds);
}
/// The integer or the level that a code stands for.
inline float number_of(const BlockFormat& format, int code) {
  return format.levels != nullptr ? format.levels->level(code) : static_cast<float>(code);
}
inline float value_of(const BlockFormat& format, const BlockGrid& grid, int code) {
  return grid.scale * number_of(format, code) + grid.offset;
}

}  // namespace taper::quantize
