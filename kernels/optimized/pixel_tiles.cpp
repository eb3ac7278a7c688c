#include "taper/kernels/optimized/pixel_tiles.h"

#include <utility>

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

// Finished sums, which are stored: whole vectors, or the first `count` lanes of one.
struct Finisher {
  const Finish& f;
  Vec low, high;
  explicit HWY_INLINE Finisher(const Finish& finish)
      : f(finish), low(broadcast(finish.low)), high(broadcast(finish.high)) {}

  HWY_INLINE Vec operator()(Vec sum, Vec bias) const {
    if (f.bias != nullptr) sum = add(sum, bias);
    return f.is_bounded ? between(sum, low, high) : sum;
  }
};

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
  const index_t step = s.vector_step, depth = s.depth;
  const int32_t* offsets = s.offsets;
  // not unrolled: gcc would move sums between registers and the stack
  for (index_t k = 0; k < depth; ++k, weight += panel_width) {
    const index_t at = has_offsets ? offsets[k] : k;
    Vec w[vectors];
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) w[v] = load(weight + v * step);
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

  const index_t rest = s.columns - (vectors - 1) * lanes;  // of the last vector
  const auto write = [&](const auto& finish) HWY_ATTR {
    TAPER_UNROLL
    for (int p = 0; p < pixels; ++p) {
      float* to = s.to + p * s.to_pixel;
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v, to += lanes) {
        if (v + 1 < vectors || rest == lanes) {
          store(finish(s.adds ? add(load(to), sum[p][v]) : sum[p][v], v), to);
        } else {
          store_first(finish(s.adds ? add(load_first(to, rest), sum[p][v]) : sum[p][v], v), to,
                      rest);
        }
      }
    }
  };
  if (s.finish == nullptr) return write([](Vec x, int) HWY_ATTR { return x; });
  const Finisher finisher(*s.finish);
  Vec bias[vectors];
  TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) {
    if (s.finish->bias == nullptr)
      bias[v] = broadcast(0);
    else if (v + 1 < vectors || rest == lanes)
      bias[v] = load(s.finish->bias + v * lanes);
    else
      bias[v] = load_first(s.finish->bias + v * lanes, rest);
  }
  write([&](Vec x, int v) HWY_ATTR { return finisher(x, bias[v]); });
}

// ---- depthwise: a result sees one channel ----

constexpr int depthwise_vectors = panel_vectors < 2 ? 1 : 2;

// The sums of `pixels` neighbours for some vectors of channels, from `channel` on. `size`: of a
// square kernel whose loops are unrolled; 0: any. `is_edge`: one pixel, some of whose taps lie
// outside.
template <int size, int pixels, int vectors, bool is_edge>
HWY_INLINE void sum_taps(const DepthwiseRow& r, index_t x, index_t channel,
                         Vec (&sum)[pixels][vectors]) {
  TAPER_UNROLL
  for (int p = 0; p < pixels; ++p) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) sum[p][v] = broadcast(0);
  const index_t tap_rows = size != 0 ? size : r.tap_rows,
                tap_columns = size != 0 ? size : r.tap_columns;
  const float* weight = PackedMatrix{r.weight, tap_rows * tap_columns}.at(channel, 0);
  const auto meet = [&](const float* from, index_t pixel, bool is_inside) HWY_ATTR {
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) {
      const Vec w = load(weight + v * lanes);
      TAPER_UNROLL
      for (int p = 0; p < pixels; ++p) {
        const float* at = from + p * pixel + v * lanes;
        sum[p][v] = multiply_add(is_inside ? load(at) : broadcast(0), w, sum[p][v]);
      }
    }
    weight += panel_width;
  };
  const index_t first = x * r.stride - r.padding;
  const auto row = [&](index_t i) HWY_ATTR {
    const index_t step = r.row_steps[i], column = step * r.dilation, pixel = step * r.stride;
    const float* from = r.rows[i] + first * step + (step != 0 ? channel : 0);
    if constexpr (size != 0) {
      TAPER_UNROLL
      for (int j = 0; j < size; ++j, from += column) meet(from, pixel, true);
    } else {
      for (index_t j = 0; j < tap_columns; ++j, from += column) {
        const index_t at = first + j * r.dilation;
        meet(from, pixel, !is_edge || (at >= 0 && at < r.width));
      }
    }
  };
  if constexpr (size != 0) {
    TAPER_UNROLL
    for (int i = 0; i < size; ++i) row(i);
  } else {
    for (index_t i = 0; i < tap_rows; ++i) row(i);
  }
}

template <int pixels, int vectors, bool is_edge>
HWY_INLINE void depthwise_tile(const DepthwiseRow& r, const Finisher& finish, index_t x,
                               index_t channel, index_t rest) {
  Vec sum[pixels][vectors], bias[vectors];
  const bool is_square = r.tap_rows == r.tap_columns && !is_edge;
  if (is_square && r.tap_rows == 3)
    sum_taps<3, pixels, vectors, is_edge>(r, x, channel, sum);
  else if (is_square && r.tap_rows == 5)
    sum_taps<5, pixels, vectors, is_edge>(r, x, channel, sum);
  else
    sum_taps<0, pixels, vectors, is_edge>(r, x, channel, sum);
  TAPER_UNROLL
  for (int v = 0; v < vectors; ++v)
    bias[v] = r.finish.bias == nullptr ? broadcast(0)
              : v + 1 < vectors || rest == lanes
                  ? load(r.finish.bias + channel + v * lanes)
                  : load_first(r.finish.bias + channel + v * lanes, rest);
  float* to = r.to + x * r.to_pixel + channel;
  TAPER_UNROLL
  for (int p = 0; p < pixels; ++p, to += r.to_pixel) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) {
    const Vec y = finish(sum[p][v], bias[v]);
    if (v + 1 < vectors || rest == lanes)
      store(y, to + v * lanes);
    else
      store_first(y, to + v * lanes, rest);
  }
}

// All channels of some pixels: they lie side by side in memory.
template <int pixels, bool is_edge = false>
void depthwise_pixels(const DepthwiseRow& r, const Finisher& finish, index_t x) {
  constexpr index_t width = depthwise_vectors * lanes;
  for (index_t channel = 0; channel < r.channels; channel += width) {
    const index_t left = r.channels - channel;
    if (left > width - lanes)
      depthwise_tile<pixels, depthwise_vectors, is_edge>(
          r, finish, x, channel, left < width ? left - (width - lanes) : lanes);
    else
      depthwise_tile<pixels, 1, is_edge>(r, finish, x, channel, left);
  }
}

void depthwise_row(const DepthwiseRow& r) {
  const Finisher finish(r.finish);
  const index_t reach = (r.tap_columns - 1) * r.dilation;
  const auto is_inner = [&](index_t x, index_t count) {
    return x + count <= r.result_width && x * r.stride >= r.padding &&
           (x + count - 1) * r.stride - r.padding + reach < r.width;
  };
  for (index_t x = 0; x < r.result_width;) {
    if (is_inner(x, 6))
      depthwise_pixels<6>(r, finish, x), x += 6;
    else if (is_inner(x, 5))
      depthwise_pixels<5>(r, finish, x), x += 5;
    else if (is_inner(x, 2))
      depthwise_pixels<2>(r, finish, x), x += 2;
    else if (is_inner(x, 1))
      depthwise_pixels<1>(r, finish, x), x += 1;
    else
      depthwise_pixels<1, true>(r, finish, x), x += 1;
  }
}

// ---- the table ----

// A tile's sums, a vector of weights for each of its vectors, and an input fit into the registers.
constexpr int most_vectors = lanes == panel_width ? 3 : 2;
constexpr int pixels_of(int vectors) {
  const int most = (registers - 1 - vectors) / vectors;
  return most < PixelTiles::most_pixels ? most : PixelTiles::most_pixels;
}

template <int pixels, int vectors>
constexpr PixelTile tile_or_none() {
  if constexpr (vectors <= most_vectors && pixels <= pixels_of(vectors))
    return tile<pixels, vectors>;
  else
    return nullptr;
}
template <size_t... p>
constexpr PixelTiles make_table(std::index_sequence<p...>) {
  return {lanes,
          most_vectors,
          {pixels_of(1), pixels_of(2), pixels_of(3)},
          {{tile_or_none<p + 1, 1>(), tile_or_none<p + 1, 2>(), tile_or_none<p + 1, 3>()}...},
          depthwise_row};
}
constexpr PixelTiles table = make_table(std::make_index_sequence<PixelTiles::most_pixels>());

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taper::optimized {

// A compiler whose baseline is above a level leaves the level out: its place is taken by the
// baseline.
constexpr PixelTiles pixel_tiles_portable = HWY_STATIC_DISPATCH(table);
#if TAPER_X86_LEVELS
#if HWY_TARGETS & HWY_AVX2
constexpr PixelTiles pixel_tiles_avx2 = N_AVX2::table;
#else
constexpr PixelTiles pixel_tiles_avx2 = HWY_STATIC_DISPATCH(table);
#endif
constexpr PixelTiles pixel_tiles_avx512 = N_AVX3::table;
#endif

}  // namespace taper::optimized
#endif
