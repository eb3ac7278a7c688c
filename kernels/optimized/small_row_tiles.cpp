#include "taper/kernels/optimized/small_row_tiles.h"

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "taper/kernels/optimized/small_row_tiles.cpp"
#include "hwy/foreach_target.h"
#include "taper/kernels/optimized/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

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

constexpr SmallRowTiles table = {{small_row_tile<Half, 1>, small_row_tile<Half, 2>,
                                  small_row_tile<Half, 3>, small_row_tile<Half, 4>},
                                 {small_row_tile<BFloat16, 1>, small_row_tile<BFloat16, 2>,
                                  small_row_tile<BFloat16, 3>, small_row_tile<BFloat16, 4>}};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taper::optimized {
TAPER_DEFINE_LEVEL_TABLES(SmallRowTiles, small_row_tiles, table)
}  // namespace taper::optimized
#endif
