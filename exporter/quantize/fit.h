// Chooses scales and offsets of blocks.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "taper/exporter/quantize/block_format.h"

namespace taper::quantize {

enum class Fit : uint8_t {
  range,  ///< the scale follows from the smallest and the largest element: round to nearest
  mse,    ///< the scale with the least squared error, of many that clip the ends
};

/// Writes the scales of a block for the elements `w`. `importance` has a weight for each square of
/// an error, or is empty.
void fit_block(const BlockFormat& format, Fit how, std::span<const float> w,
               std::span<const float> importance, std::byte* block);

/// Rounds the elements to the grids that a block has, and writes the integers.
void round_block(const BlockFormat& format, std::span<const float> w, std::byte* block);

}  // namespace taper::quantize
