// Few rows times dense columns of b (RowTile). foreach_target.h includes this file
// once for each level, so it has no #pragma once.
#if defined(TAPER_KERNELS_OPTIMIZED_ROW_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAPER_KERNELS_OPTIMIZED_ROW_TILE_INL_H_
#undef TAPER_KERNELS_OPTIMIZED_ROW_TILE_INL_H_
#else
#define TAPER_KERNELS_OPTIMIZED_ROW_TILE_INL_H_
#endif

#include "taper/kernels/optimized/microkernel.h"
#include "taper/kernels/optimized/simd-inl.h"
#include "taper/kernels/optimized/tasks.h"

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

// turned[k][j] = from[k + j * stride] for k in [0, depth), j in [0, columns); 0 for other j.
void turn(const float* from, index_t stride, index_t columns, index_t depth,
          float (*turned)[lanes]) {
  for (index_t k = 0; k < depth; ++k)
    for (index_t j = 0; j < lanes; ++j) turned[k][j] = j < columns ? from[k + j * stride] : 0;
}

// The same for four columns or more, and a depth of 16. Other j are left as they are.
void turn_fours(const float* from, index_t stride, index_t columns, float (*turned)[lanes]) {
  for (index_t i = 0; i < columns; i += 4) {
    const index_t j = smaller(i, columns - 4);
    transpose<4, 4>(from + j * stride, stride, turned[0] + j, lanes);
  }
}

// `unit`: a_column is 1. Then places of `a` have addresses that differ by constants.
template <int rows, bool unit>
void row_tile_along(index_t depth, index_t depth_block, const float* HWY_RESTRICT a, index_t a_row,
                    index_t a_column, const float* HWY_RESTRICT b, index_t b_column,
                    index_t columns, float* HWY_RESTRICT c, index_t c_row) {
  constexpr int step = 16;  // one cache line of each column
  alignas(64) float copy[step][lanes] = {};
  for (index_t begin = 0; begin == 0 || begin < columns; begin += lanes) {
    // the last columns may be computed twice
    const index_t j = columns - begin >= lanes ? begin : columns > lanes ? columns - lanes : 0;
    const index_t width = columns - j < lanes ? columns - j : lanes;
    const float* from = b + j * b_column;
    Vec total[rows], sum[rows];
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) total[r] = broadcast(0);
    for (index_t first = 0; first < depth; first += depth_block) {
      const index_t stop = depth - first < depth_block ? depth : first + depth_block;
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) sum[r] = broadcast(0);
      for (index_t k = first; k < stop; k += step) {
        const index_t here = stop - k < step ? stop - k : step;
        const float* here_in_a[rows];
        TAPER_UNROLL
        for (int r = 0; r < rows; ++r) here_in_a[r] = a + r * a_row + (unit ? k : k * a_column);
        const auto multiply = [&](index_t i, Vec column) HWY_ATTR {
          TAPER_UNROLL
          for (int r = 0; r < rows; ++r)
            sum[r] = multiply_add(broadcast(here_in_a[r][unit ? i : i * a_column]), column, sum[r]);
        };
        if (here == step && width == lanes) {
          TAPER_UNROLL
          for (int i = 0; i < step; i += lanes) {
            Vec line[lanes];
            load_square(from + k + i, b_column, line);
            TAPER_UNROLL
            for (int l = 0; l < lanes; ++l) multiply(i + l, line[l]);
          }
        } else {
          if (here == step && width >= 4)
            turn_fours(from + k, b_column, width, copy);
          else
            turn(from + k, b_column, width, here, copy);
          for (index_t i = 0; i < here; ++i) multiply(i, load(copy[i]));
        }
      }
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) total[r] = first == 0 ? sum[r] : add(total[r], sum[r]);
    }
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) {
      if (width == lanes)
        store(total[r], c + r * c_row + j);
      else
        store_first(total[r], c + r * c_row + j, width);
    }
  }
}

template <int rows>
void row_tile(index_t depth, index_t depth_block, const float* HWY_RESTRICT a, index_t a_row,
              index_t a_column, const float* HWY_RESTRICT b, index_t b_column, index_t columns,
              float* HWY_RESTRICT c, index_t c_row) {
  const auto run = a_column == 1 ? row_tile_along<rows, true> : row_tile_along<rows, false>;
  run(depth, depth_block, a, a_row, a_column, b, b_column, columns, c, c_row);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#endif
