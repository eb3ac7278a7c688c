#include "taper/kernels/optimized/image_tiles.h"

#include <utility>

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "taper/kernels/optimized/image_tiles.cpp"
#include "hwy/foreach_target.h"
#include "taper/kernels/optimized/channel-inl.h"
#include "taper/kernels/optimized/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

constexpr int most_rows = registers == 32 ? 12 : 6;  // as those of Microkernels

template <int rows, int vectors>
void turned_tile(index_t depth, const float* HWY_RESTRICT a, const index_t* HWY_RESTRICT a_columns,
                 const float* HWY_RESTRICT b, index_t b_row, index_t b_vector,
                 float* HWY_RESTRICT c, index_t c_row, bool add_to_c) {
  Vec sum[rows][vectors];
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) sum[r][v] = broadcast(0);
  for (index_t k = 0; k < depth; ++k, b += b_row) {
    const float* column = a + a_columns[k];
    Vec row[vectors];
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) row[v] = load(b + v * b_vector);
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) {
      const Vec x = broadcast(column[r]);
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) sum[r][v] = multiply_add(row[v], x, sum[r][v]);
    }
  }
  store_tile(sum, c, c_row, add_to_c);
}

// ---- rows of an image ----

// Writes whole vectors. Elements behind `count` are overwritten later.
void zero(index_t count, float* to) {
  for (index_t i = 0; i < count; i += lanes) store(broadcast(0), to + i);
}

void copy_row(const float* from, index_t step, index_t count, float* to) {
  index_t i = 0;
  if (step == 1) {
    for (; i + lanes <= count; i += lanes) store(load(from + i), to + i);
    if (i < count) store(load_first(from + i, count - i), to + i);
    return;
  }
  for (; step == 2 && i + lanes < count; i += lanes)
    store(even(load(from + 2 * i), load(from + 2 * i + lanes)), to + i);
  if (step == 2 && count >= lanes) {
    i = count - lanes;  // so that nothing behind the last element is read
    store(even(load(from + 2 * i), load_first(from + 2 * i + lanes, lanes - 1)), to + i);
    return;
  }
  for (; i < count; ++i) to[i] = from[i * step];
}

void pad(const Padded& p) {
  zero(p.top * p.columns, p.to);
  float* to = p.to + p.top * p.columns;
  const float* from = p.from;
  for (index_t i = p.top; i < p.bottom; ++i, to += p.columns, from += p.from_row) {
    zero(p.left, to);
    copy_row(from, p.step, p.right - p.left, to + p.left);
    zero(p.columns - p.right, to + p.right);
  }
  zero((p.rows - p.bottom) * p.columns, to);
}

// ---- the table ----

template <size_t... r>
constexpr ImageTiles make_table(std::index_sequence<r...>) {
  return {{{turned_tile<r + 1, 1>, turned_tile<r + 1, 2>}...}, channel, pad};
}
constexpr ImageTiles table = make_table(std::make_index_sequence<most_rows>());

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taper::optimized {
TAPER_DEFINE_LEVEL_TABLES(ImageTiles, image_tiles, table)
}  // namespace taper::optimized
#endif
