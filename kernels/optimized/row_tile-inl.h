// Few rows times dense columns of b (RowTile and SmallRowTile). foreach_target.h includes this file
// once for each level, so it has no #pragma once.
#if defined(TAPER_KERNELS_OPTIMIZED_ROW_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAPER_KERNELS_OPTIMIZED_ROW_TILE_INL_H_
#undef TAPER_KERNELS_OPTIMIZED_ROW_TILE_INL_H_
#else
#define TAPER_KERNELS_OPTIMIZED_ROW_TILE_INL_H_
#endif

#include "taper/kernels/optimized/microkernel.h"
#include "taper/kernels/optimized/simd-inl.h"

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

template <int rows>
void row_tile(index_t depth, index_t depth_block, const float* HWY_RESTRICT a, index_t a_row,
              index_t a_column, const float* HWY_RESTRICT b, index_t b_column, index_t columns,
              float* HWY_RESTRICT c, index_t c_row) {
  constexpr int step = 16;  // one cache line of each column
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

// How columns of small floats, which are read along k, become vectors across columns. `vectors` of
// them are computed side by side, so that each chain hides the latency of the others.
// for_each_place calls multiply(k + i, v, column) for i in [0, length), in order for each v.
// `column` holds element k + i of the columns from[v * lanes] to from[v * lanes + lanes - 1]. If
// `whole`, `length` is `step`; otherwise it is less.
template <class E, int rows>
struct SmallColumns;

template <int rows>
struct SmallColumns<BFloat16, rows> {
  static constexpr int vectors = 2;
  static constexpr index_t step = 8;

  template <bool whole, class Multiply>
  static HWY_INLINE void for_each_place(const BFloat16* const* from, index_t k, index_t length,
                                        const Multiply& multiply) {
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) {
      const Lines<Vec> pairs = turned<lanes>(load_pairs<lanes>(from + v * lanes, k));
      TAPER_UNROLL
      for (int i = 0; i < step; i += 2) {
        if (whole || i < length) multiply(k + i, v, lower_halves(pairs.line[i / 2]));
        if (whole || i + 1 < length) multiply(k + i + 1, v, upper_halves(pairs.line[i / 2]));
      }
    }
  }
};
template <int rows>
struct SmallColumns<Half, rows> {
  static constexpr int vectors = rows <= 2 ? 4 : 2;
  static constexpr index_t step = 128;

  template <bool, class Multiply>
  static HWY_INLINE void for_each_place(const Half* const* from, index_t k, index_t length,
                                        const Multiply& multiply) {
    alignas(64) Half line[step][vectors * lanes];
    for (int c = 0; c < vectors * lanes; c += 8)
      for (index_t i = 0; i < length; i += small_lines)
        turn_small(from + c, k + i, line[i] + c, vectors * lanes);
    for (index_t i = 0; i < length; ++i) TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) multiply(k + i, v, load_small(line[i] + v * lanes));
  }
};

template <class E, int rows>
void small_row_tile(index_t depth, index_t depth_block, const float* HWY_RESTRICT a, index_t a_row,
                    const void* b, index_t b_column, index_t columns, float* HWY_RESTRICT c,
                    index_t c_row, bool add_to_c) {
  using Columns = SmallColumns<E, rows>;
  constexpr int vectors = Columns::vectors, width = vectors * lanes;
  for (index_t j = 0; j < columns; j += width) {
    const index_t here = columns - j < width ? columns - j : width;
    const E* from[width];  // beyond the last column: that column again; its results are not used
    for (index_t i = 0; i < width; ++i)
      from[i] = static_cast<const E*>(b) + (j + (i < here ? i : here - 1)) * b_column;
    for (index_t first = 0; first == 0 || first < depth; first += depth_block) {
      const index_t stop = depth - first < depth_block ? depth : first + depth_block;
      Vec sum[rows][vectors];
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) sum[r][v] = broadcast(0);
      const auto multiply = [&](index_t k, int v, Vec column) HWY_ATTR {
        TAPER_UNROLL
        for (int r = 0; r < rows; ++r)
          sum[r][v] = multiply_add(broadcast(a[r * a_row + k]), column, sum[r][v]);
      };
      index_t k = first;
      for (; k + Columns::step <= stop; k += Columns::step)
        Columns::template for_each_place<true>(from, k, Columns::step, multiply);
      if (k < stop) Columns::template for_each_place<false>(from, k, stop - k, multiply);
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) {
        const index_t count = here - v * lanes;
        float* to = c + r * c_row + j + v * lanes;
        const bool adds = add_to_c || first > 0;
        if (count >= lanes)
          store(adds ? add(load(to), sum[r][v]) : sum[r][v], to);
        else if (count > 0)
          store_first(adds ? add(load_first(to, count), sum[r][v]) : sum[r][v], to, count);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#endif
