// Few rows times columns of b that lie densely (RowTile and SmallRowTile). Included once per level
// by foreach_target.h: no #pragma once.
#if defined(TAPER_KERNELS_OPTIMIZED_ROW_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAPER_KERNELS_OPTIMIZED_ROW_TILE_INL_H_
#undef TAPER_KERNELS_OPTIMIZED_ROW_TILE_INL_H_
#else
#define TAPER_KERNELS_OPTIMIZED_ROW_TILE_INL_H_
#endif

#include <cstring>

#include "taper/kernels/optimized/microkernel.h"
#include "taper/kernels/optimized/simd-inl.h"

#ifndef TAPER_UNROLL
#define TAPER_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

// turned[k][j] = from[k + j * stride] for k in [0, depth), j in [0, columns), 0 beyond.
void turn(const float* from, index_t stride, index_t columns, index_t depth,
          float (*turned)[lanes]) {
  for (index_t k = 0; k < depth; ++k)
    for (index_t j = 0; j < lanes; ++j) turned[k][j] = j < columns ? from[k + j * stride] : 0;
}

template <int rows>
void row_tile(index_t depth, index_t depth_block, const float* HWY_RESTRICT a, index_t a_row,
              index_t a_column, const float* HWY_RESTRICT b, index_t b_column, index_t columns,
              float* HWY_RESTRICT c, index_t c_row) {
  constexpr int step = 16;  // a line of the cache from each column
  alignas(64) float copy[step][lanes];
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
        const auto multiply = [&](index_t i, Vec column) HWY_ATTR {
          TAPER_UNROLL
          for (int r = 0; r < rows; ++r)
            sum[r] = multiply_add(broadcast(a[r * a_row + (k + i) * a_column]), column, sum[r]);
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

// Small floats take half the memory that the columns of f32 do, which no transposition would keep
// up with: dot products instead, `across` columns at a time.
template <int rows, int across, class E>
void dot_products(index_t depth, const float* HWY_RESTRICT a, index_t a_row,
                  const E* HWY_RESTRICT b, index_t b_column, float* HWY_RESTRICT c, index_t c_row,
                  bool add_to_c) {
  Vec sum[rows][across];
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r) TAPER_UNROLL
  for (int j = 0; j < across; ++j) sum[r][j] = broadcast(0);
  index_t k = 0;
  for (; k + lanes <= depth; k += lanes) TAPER_UNROLL
  for (int j = 0; j < across; ++j) {
    const Vec column = load_small(b + j * b_column + k);
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r)
      sum[r][j] = multiply_add(load(a + r * a_row + k), column, sum[r][j]);
  }
  if (const index_t rest = depth - k; rest > 0) TAPER_UNROLL
  for (int j = 0; j < across; ++j) {
    E last[lanes] = {};
    std::memcpy(last, b + j * b_column + k, static_cast<size_t>(rest) * sizeof(E));
    const Vec column = load_small(last);
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r)
      sum[r][j] = multiply_add(load_first(a + r * a_row + k, rest), column, sum[r][j]);
  }
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r) TAPER_UNROLL
  for (int j = 0; j < across; ++j) {
    const float total = joined(sum[r][j]);
    c[r * c_row + j] = add_to_c ? c[r * c_row + j] + total : total;
  }
}

template <class E, int rows>
void small_row_tile(index_t depth, const float* a, index_t a_row, const void* b, index_t b_column,
                    index_t columns, float* c, index_t c_row, bool add_to_c) {
  constexpr int across = 8 / rows;  // as many sums as hide the latency of each other
  const E* column = static_cast<const E*>(b);
  index_t j = 0;
  for (; j + across <= columns; j += across, column += across * b_column)
    dot_products<rows, across>(depth, a, a_row, column, b_column, c + j, c_row, add_to_c);
  for (; j < columns; ++j, column += b_column)
    dot_products<rows, 1>(depth, a, a_row, column, b_column, c + j, c_row, add_to_c);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#endif
