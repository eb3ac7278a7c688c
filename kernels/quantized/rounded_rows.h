// Activations in 8 bits: each row in units of 32 elements with a scale.
#pragma once
#include "taper/kernels/quantized/blocks.h"

namespace taper::quantized {

/// What a product needs to know of a unit. Element k is `scale` times its integer. The integers are
/// round(x * (127 / a)), half to even, where a is the largest magnitude, and scale is a / 127. If a
/// is below 1e-30, all are zero. If an element is NaN or infinite, the scale is NaN.
struct RoundedUnit {
  float scale;
  float weighted[3];  ///< scale times the sum of the integers: of the two halves, and of all
  /// The negative sums times what is taken from each unsigned integer of a format: 8 and 128 for
  /// all, 32 for the two halves.
  int32_t without_8, without_128, without_32[2];
};
static_assert(sizeof(RoundedUnit) == 32);

/// Rows of activations. `values` has `depth` bytes for each row.
struct RoundedRows {
  int8_t* values = nullptr;
  RoundedUnit* units = nullptr;
  index_t rows = 0, depth = 0;

  index_t units_of_row() const { return depth / unit_elements; }
  const int8_t* value(index_t row, index_t unit) const {
    return values + row * depth + unit * unit_elements;
  }
  const RoundedUnit& unit(index_t row, index_t unit) const {
    return units[row * units_of_row() + unit];
  }
};

/// Rounds the elements of one unit.
void round_unit(const float* x, int8_t* values, RoundedUnit& unit);
/// Rounds `count` units that follow each other.
using RoundUnits = void (*)(const float* x, index_t count, int8_t* values, RoundedUnit* units);
void round_units(const float* x, index_t count, int8_t* values, RoundedUnit* units);
/// The same bits, on machines with AVX2.
void round_units_avx2(const float* x, index_t count, int8_t* values, RoundedUnit* units);

/// The bytes of so many rows, which `cut_rounded_rows` cuts from memory at a multiple of 64.
constexpr size_t bytes_of_rounded_rows(index_t rows, index_t depth) {
  const index_t values = (rows * depth + 63) / 64 * 64;
  return static_cast<size_t>(values + rows * (depth / unit_elements) *
                                          static_cast<index_t>(sizeof(RoundedUnit)));
}
inline RoundedRows cut_rounded_rows(void* memory, index_t rows, index_t depth) {
  auto* bytes = static_cast<std::byte*>(memory);
  const index_t values = (rows * depth + 63) / 64 * 64;
  return {reinterpret_cast<int8_t*>(bytes), reinterpret_cast<RoundedUnit*>(bytes + values), rows,
          depth};
}

}  // namespace taper::quantized
