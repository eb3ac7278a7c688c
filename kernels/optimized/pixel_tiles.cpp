#include "taper/kernels/optimized/pixel_tiles.h"

#include <utility>

#include "taper/kernels/optimized/tasks.h"

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "taper/kernels/optimized/pixel_tiles.cpp"
#include "hwy/foreach_target.h"
#include "taper/kernels/optimized/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

constexpr int panel_vectors = panel_width / lanes;

// The last steps are branches around loops over all sums: a branch for each sum would make a tile
// twice as large.
template <int pixels, int vectors>
HWY_INLINE void bound(const Finish& finish, int v, Vec (&sum)[pixels][vectors]) {
  const Vec low = broadcast(finish.low), high = broadcast(finish.high);
  TAPER_UNROLL
  for (int p = 0; p < pixels; ++p) sum[p][v] = between(sum[p][v], low, high);
}
template <int pixels, int vectors>
HWY_INLINE void add_bias(Vec bias, int v, Vec (&sum)[pixels][vectors]) {
  TAPER_UNROLL
  for (int p = 0; p < pixels; ++p) sum[p][v] = add(sum[p][v], bias);
}
// Vector v of each pixel is whole, or has `count` lanes.
template <int pixels, int vectors>
HWY_INLINE void add_stored(const float* from, index_t to_pixel, index_t count, int v,
                           Vec (&sum)[pixels][vectors]) {
  if (count >= lanes) {
    TAPER_UNROLL
    for (int p = 0; p < pixels; ++p) sum[p][v] = add(load(from + p * to_pixel), sum[p][v]);
  } else {
    TAPER_UNROLL
    for (int p = 0; p < pixels; ++p)
      sum[p][v] = add(load_first(from + p * to_pixel, count), sum[p][v]);
  }
}
template <int pixels, int vectors>
HWY_INLINE void store_sums(const Vec (&sum)[pixels][vectors], int v, index_t count, float* to,
                           index_t to_pixel, index_t pixels_here = pixels) {
  if (count >= lanes) {
    TAPER_UNROLL
    for (int p = 0; p < pixels; ++p) {
      if (p >= pixels_here) break;
      store(sum[p][v], to + p * to_pixel);
    }
  } else {
    TAPER_UNROLL
    for (int p = 0; p < pixels; ++p) {
      if (p >= pixels_here) break;
      store_first(sum[p][v], to + p * to_pixel, count);
    }
  }
}
HWY_INLINE Vec load_at_most(const float* from, index_t count) {
  return count >= lanes ? load(from) : load_first(from, count);
}

// ---- dense: each result sees all channels of its group ----

template <bool has_offsets, int pixels, int vectors>
HWY_INLINE void sum_up(const PixelSums& s, const float* const* pixel, Vec (&sum)[pixels][vectors]) {
  TAPER_UNROLL
  for (int p = 0; p < pixels; ++p) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) sum[p][v] = broadcast(0);
  const float* from[pixels];
  TAPER_UNROLL
  for (int p = 0; p < pixels; ++p) from[p] = pixel[p] + (has_offsets ? 0 : s.first);
  const float* weight = s.weight;
  const index_t panel_step = s.panel_step, depth = s.depth;
  const int32_t* offsets = s.offsets;
  const char* next = reinterpret_cast<const char*>(s.next.from);
  const index_t next_step = s.next.step;
  // not unrolled: gcc would move sums between registers and the stack
  for (index_t k = 0; k < depth; ++k, weight += panel_width) {
    const index_t at = has_offsets ? offsets[k] : k;
    Vec w[vectors];
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v)
      w[v] = load(weight + v / panel_vectors * panel_step + v % panel_vectors * lanes);
    TAPER_UNROLL
    for (int panel = 0; panel < (vectors + panel_vectors - 1) / panel_vectors; ++panel)
      __builtin_prefetch(next + panel * panel_step * static_cast<index_t>(sizeof(float)));
    next += next_step;
    TAPER_UNROLL
    for (int p = 0; p < pixels; ++p) {
      const Vec x = broadcast(from[p][at]);
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) sum[p][v] = multiply_add(x, w[v], sum[p][v]);
    }
  }
}

template <int pixels, int vectors>
void tile(const PixelSums& s, const float* const* pixel) {
  Vec sum[pixels][vectors];
  if (s.offsets != nullptr)
    sum_up<true>(s, pixel, sum);
  else
    sum_up<false>(s, pixel, sum);

  // the last vector may be a part
  const auto count = [&](int v) { return v + 1 < vectors ? lanes : s.columns - v * lanes; };
  if (s.adds) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) add_stored(s.to + v * lanes, s.to_pixel, count(v), v, sum);
  if (s.finish != nullptr) {
    const float* const bias = s.finish->bias;
    if (bias != nullptr) TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) add_bias(load_at_most(bias + v * lanes, count(v)), v, sum);
    if (s.finish->is_bounded) TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) bound(*s.finish, v, sum);
  }
  TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) store_sums(sum, v, count(v), s.to + v * lanes, s.to_pixel);
}

// ---- depthwise: a result sees one channel ----

// x, loaded once: otherwise gcc reads the memory again for every multiply-add.
template <class V>
HWY_INLINE V in_register(V x) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  __asm__("" : "+v"(x.raw));
#endif
  return x;
}

// Adds the taps of one row to the sums of neighbouring pixels, for some vectors of channels. Each
// input is loaded once and meets the tap of every pixel that sees it. `load_pixel(i, v)`: vector v
// of the i-th input.
template <int size, int stride, int pixels, int vectors, class Load>
HWY_INLINE void add_row(const float* weight, const Load& load_pixel, Vec (&sum)[pixels][vectors]) {
  Vec w[size][vectors];
  TAPER_UNROLL
  for (int j = 0; j < size; ++j) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) w[j][v] = load(weight + j * panel_width + v * lanes);
  TAPER_UNROLL
  for (int i = 0; i < (pixels - 1) * stride + size; ++i) {
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) {
      const Vec x = in_register(load_pixel(i, v));
      TAPER_UNROLL
      for (int p = 0; p < pixels; ++p)
        if (const int j = i - p * stride; j >= 0 && j < size)
          sum[p][v] = multiply_add(x, w[j][v], sum[p][v]);
    }
  }
}

// The same for any kernel, stride and dilation.
template <int pixels, int vectors, class Load>
HWY_INLINE void add_any_row(const DepthwiseRow& r, const float* weight, const Load& load_pixel,
                            Vec (&sum)[pixels][vectors]) {
  for (index_t j = 0; j < r.tap_columns; ++j, weight += panel_width) {
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) {
      const Vec w = load(weight + v * lanes);
      TAPER_UNROLL
      for (int p = 0; p < pixels; ++p)
        sum[p][v] = multiply_add(load_pixel(j * r.dilation + p * r.stride, v), w, sum[p][v]);
    }
  }
}

// The results of neighbouring pixels, from x on. `size`: of a square kernel without dilation; 0:
// any. `is_edge`: some inputs may lie outside of the image. `is_cut`: some pixels may lie behind
// the row.
template <int size, int stride, int pixels, int vectors, bool is_edge, bool is_cut>
void depthwise_tile(const DepthwiseRow& r, index_t x) {
  const index_t first = x * r.stride - r.padding;
  for (index_t channel = 0; channel < r.channels; channel += vectors * lanes) {
    const float* weight = PackedMatrix{r.weight, r.tap_rows * r.tap_columns}.at(channel, 0);
    Vec sum[pixels][vectors];
    TAPER_UNROLL
    for (int p = 0; p < pixels; ++p) TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) sum[p][v] = broadcast(0);
    for (index_t row = 0; row < r.tap_rows; ++row, weight += r.tap_columns * panel_width) {
      const index_t step = r.row_steps[row];
      const float* const from = r.rows[row] + first * step + (step != 0 ? channel : 0);
      const auto load_pixel = [&](index_t i, int v) HWY_ATTR {
        return !is_edge || (first + i >= 0 && first + i < r.width)
                   ? load(from + i * step + v * lanes)
                   : broadcast(0);
      };
      if constexpr (size != 0)
        add_row<size, stride>(weight, load_pixel, sum);
      else
        add_any_row(r, weight, load_pixel, sum);
    }

    const index_t here = is_cut ? r.result_width - x : pixels;
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) {
      const index_t at = channel + v * lanes, count = r.channels - at;
      if (count <= 0) break;
      if (r.finish.bias != nullptr) add_bias(load_at_most(r.finish.bias + at, count), v, sum);
      if (r.finish.is_bounded) bound(r.finish, v, sum);
      store_sums(sum, v, count, r.to + x * r.to_pixel + at, r.to_pixel, here);
    }
  }
}

// Tiles of so many pixels; the last one may compute some again. `all_edges`: rows are so short that
// many tiles touch an edge. Then a row may be shorter than a tile, too.
template <int size, int stride, int pixels, int vectors, bool all_edges = false>
void depthwise_tiles(const DepthwiseRow& r) {
  for (index_t begin = 0; begin < r.result_width; begin += pixels) {
    const index_t end = larger(0, r.result_width - pixels), x = begin < end ? begin : end,
                  first = x * r.stride - r.padding,
                  last = first + (pixels - 1) * r.stride + (r.tap_columns - 1) * r.dilation;
    if (all_edges || first < 0 || last >= r.width)
      depthwise_tile<size, stride, pixels, vectors, true, all_edges>(r, x);
    else
      depthwise_tile<size, stride, pixels, vectors, all_edges, all_edges>(r, x);
  }
}

void any_depthwise_row(const DepthwiseRow& r) {
  if (r.result_width >= 4)
    depthwise_tiles<0, 0, 4, 1>(r);
  else
    depthwise_tiles<0, 0, 1, 1, true>(r);
}

// Eight sums fit beside the taps of a row, also into sixteen registers. Two vectors of four pixels
// share the arithmetic of addresses; many inputs or short rows of taps need that.
template <int size, int stride>
void depthwise_row_of(const DepthwiseRow& r) {
  constexpr int vectors = registers < 32 && (size == 3 || stride == 2) ? 2 : 1, wide = 8 / vectors;
  if constexpr (wide == 8)
    if (ceil_div(r.result_width, 7) * 7 < ceil_div(r.result_width, 8) * 8)  // less is computed
      return depthwise_tiles<size, stride, 7, 1, true>(r);
  if (r.result_width >= wide) return depthwise_tiles<size, stride, wide, vectors>(r);
  any_depthwise_row(r);
}

// `most`: wider windows have no tiles of their own.
template <int most>
void depthwise_row(const DepthwiseRow& r) {
  // The baseline of x86 has vectors of four floats and few registers: any tile would do.
  constexpr bool has_own_tiles = registers >= 32 || panel_vectors <= 2;
  if constexpr (has_own_tiles) {
    const auto is = [&](index_t size, index_t stride) {
      return r.tap_rows == size && r.tap_columns == size && r.dilation == 1 && r.stride == stride;
    };
    if (is(3, 1)) return depthwise_row_of<3, 1>(r);
    if (is(3, 2)) return depthwise_row_of<3, 2>(r);
    if constexpr (most >= 7) {
      if (is(5, 1)) return depthwise_row_of<5, 1>(r);
      if (is(5, 2)) return depthwise_row_of<5, 2>(r);
      if (is(7, 1)) return depthwise_row_of<7, 1>(r);
      if (is(7, 2)) return depthwise_row_of<7, 2>(r);
    }
  }
  any_depthwise_row(r);
}

// ---- the table ----

// A tile's sums, a vector of weights for each of its vectors, and an input fit into the registers.
constexpr int most_vectors = lanes == panel_width ? 3 : 2;
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
constexpr int most_pixels = 4;  // few: apps link them beside those of the levels that they use
#else
constexpr int most_pixels = PixelTiles::most_pixels;
#endif
constexpr int pixels_of(int vectors) {
  return smaller(most_pixels, (registers - 1 - vectors) / vectors);
}

template <int pixels, int vectors>
constexpr PixelTile tile_or_none() {
  if constexpr (vectors <= most_vectors && pixels <= pixels_of(vectors))
    return tile<pixels, vectors>;
  else
    return nullptr;
}
template <int most, size_t... p>
constexpr PixelTiles make_table(std::index_sequence<p...>) {
  return {lanes,
          most_vectors,
          {pixels_of(1), pixels_of(2), pixels_of(3)},
          {{tile_or_none<p + 1, 1>(), tile_or_none<p + 1, 2>(), tile_or_none<p + 1, 3>()}...},
          {{8, tile<1, 8>}, {4, tile<1, 4>}},
          depthwise_row<most>};
}
using Pixels = std::make_index_sequence<PixelTiles::most_pixels>;
constexpr PixelTiles table = make_table<7>(Pixels()), table_of_threes = make_table<3>(Pixels());

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taper::optimized {
TAPER_DEFINE_LEVEL_TABLES(PixelTiles, pixel_tiles, table)
TAPER_DEFINE_LEVEL_TABLES(PixelTiles, pixel_tiles_of_threes, table_of_threes)
}  // namespace taper::optimized
#endif
