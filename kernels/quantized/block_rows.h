// Rounded rows times weights in blocks as they lie, eight rows of weights at a time. Formats of
// integers that have no panels are multiplied so.
#pragma once
#include "taper/kernels/quantized/rounded_rows.h"

namespace taper::quantized {

struct BlockRows {
  static constexpr int width = 8, most_rows = 16;

  /// to[r * width + i] is the product of row `row` + r of x, r < `rows`, with row `first` + i of w:
  /// the sum of block_tiles.h. Behind the last row of w stands that row again.
  static void multiply_avx2(const BlockMatrix& w, index_t first, const RoundedRows& x, index_t row,
                            index_t rows, float* to);
};

}  // namespace taper::quantized
