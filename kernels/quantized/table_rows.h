// Rows of f32 times weights in blocks of table levels or small floats, as they lie, sixteen rows of
// weights at a time: NF4 and the MX formats. The elements of the weight are never stored as f32.
#pragma once
#include "taper/kernels/quantized/blocks.h"

namespace taper::quantized {

struct TableRows {
  static constexpr int width = 16, most_rows = 4;

  static constexpr bool takes(Layout layout) {
    constexpr LayoutSet taken = one(Layout::nf4) | one(Layout::mxfp4) | one(Layout::mxfp6_e2m3) |
                                one(Layout::mxfp6_e3m2) | one(Layout::mxfp8_e4m3) |
                                one(Layout::mxfp8_e5m2);
    return (taken & one(layout)) != 0;
  }
  /// to[r * width + i] is the product of row r of x, r < `rows`, with row `first` + i of w: the sum
  /// of optimized/gemm.h over the elements that BlockMatrix::row gives. Behind the last row of w
  /// stands that row again.
  static void multiply_avx2(const BlockMatrix& w, index_t first, const float* x, index_t x_row,
                            index_t rows, float* to);
  static void multiply_avx512(const BlockMatrix& w, index_t first, const float* x, index_t x_row,
                              index_t rows, float* to);
};

}  // namespace taper::quantized
