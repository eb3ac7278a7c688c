// Channels of a convolution with few inputs (Channel). foreach_target.h includes this file once for
// each level, so it has no #pragma once.
#if defined(TAPER_KERNELS_OPTIMIZED_CHANNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAPER_KERNELS_OPTIMIZED_CHANNEL_INL_H_
#undef TAPER_KERNELS_OPTIMIZED_CHANNEL_INL_H_
#else
#define TAPER_KERNELS_OPTIMIZED_CHANNEL_INL_H_
#endif

#include "taper/kernels/optimized/image_tiles.h"
#include "taper/kernels/optimized/simd-inl.h"
#include "taper/kernels/optimized/tasks.h"

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

template <bool partial>
HWY_INLINE void finish_vector(const Channel& c, Vec sum, Vec bias, float* to) {
  if (c.bias != nullptr) sum = add(sum, bias);
  if (c.activation == Activation::relu) sum = relu(sum);
  if (partial)
    store_first(sum, to, c.width);
  else
    store(sum, to);
}

// Computes `rows` rows from (y, x) on. The vectors of a row lie `gap` apart. `partial`: there is
// one vector, and the channel's width is only a part of it.
template <int rows, int vectors, bool partial>
void channel_tile(const Channel& c, index_t y, index_t x, index_t gap) {
  Vec sum[rows][vectors];
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) sum[r][v] = broadcast(0);
  const float* const from = c.from + y * c.pitch + x;
  for (index_t k = 0; k < c.taps; ++k) {
    const float* at = from + c.offsets[k];
    const Vec weight = broadcast(c.weight[k]);
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r, at += c.pitch) TAPER_UNROLL
    for (int v = 0; v < vectors; ++v)
      sum[r][v] = multiply_add(weight, load(at + v * gap), sum[r][v]);
  }
  const Vec bias = broadcast(c.bias != nullptr ? *c.bias : 0);
  float* to = c.to + y * c.to_row + x;
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r, to += c.to_row) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) finish_vector<partial>(c, sum[r][v], bias, to + v * gap);
}

// A tile that would reach over an edge is moved back, so some elements are computed twice.
template <int rows, int vectors, bool partial = false>
void channel_rows(const Channel& c, index_t gap) {
  if constexpr (rows > 1)
    if (c.height < rows) return channel_rows<rows / 2, vectors, partial>(c, gap);
  const index_t width = (vectors - 1) * gap + lanes;
  for (index_t j = 0; j < c.width; j += width) {
    const index_t x = partial || c.width - j >= width ? j : c.width - width;
    for (index_t i = 0; i < c.height; i += rows)
      channel_tile<rows, vectors, partial>(c, c.height - i < rows ? c.height - rows : i, x, gap);
  }
}

// The same if several rows of taps read the same row of the image. A row is loaded once, and
// multiplied for every row of the result that it belongs to. The rows of the image are taken from
// the first on, so each sum still adds its taps in their order.
template <int tap_rows, int step, int rows, int vectors>
struct SharedTile {
  const Channel& c;
  const float* from;
  index_t gap;
  Vec sum[rows][vectors];

  template <int line>
  HWY_INLINE void meet(const float* weight, const index_t* offsets) {
    // the first and the last row of the result that `line` belongs to
    constexpr int first = line < tap_rows ? 0 : (line - tap_rows) / step + 1,
                  last = smaller(rows - 1, line / step);
    offsets += line % step * c.tap_columns;
    const float* at = from + line / step * c.pitch;
    for (index_t j = 0; j < c.tap_columns; ++j) {
      Vec x[vectors];
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) x[v] = load(at + offsets[j] + v * gap);
      TAPER_UNROLL
      for (int r = first; r <= last; ++r) {
        const Vec w = broadcast(weight[(line - step * r) * c.tap_columns + j]);
        TAPER_UNROLL
        for (int v = 0; v < vectors; ++v) sum[r][v] = multiply_add(w, x[v], sum[r][v]);
      }
    }
  }
  template <int... line>
  HWY_INLINE void meet_all(std::integer_sequence<int, line...>) {
    const float* weight = c.weight;
    const index_t* offsets = c.offsets;
    const index_t block = tap_rows * c.tap_columns;
    for (index_t k = 0; k < c.taps; k += block, weight += block, offsets += block)
      (meet<line>(weight, offsets), ...);
  }
};

template <int tap_rows, int step, int rows, int vectors>
void shared_rows(const Channel& c, index_t gap) {
  const index_t width = (vectors - 1) * gap + lanes;
  const Vec bias = broadcast(c.bias != nullptr ? *c.bias : 0);
  for (index_t j = 0; j < c.width; j += width) {
    const index_t x = c.width - j >= width || vectors == 1 ? j : c.width - width;
    for (index_t i = 0; i < c.height; i += rows) {
      const index_t y = c.height - i < rows ? c.height - rows : i;
      SharedTile<tap_rows, step, rows, vectors> tile{c, c.from + y * c.pitch + x, gap, {}};
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) tile.sum[r][v] = broadcast(0);
      tile.meet_all(std::make_integer_sequence<int, step*(rows - 1) + tap_rows>());
      float* to = c.to + y * c.to_row + x;
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r, to += c.to_row) TAPER_UNROLL
      for (int v = 0; v < vectors; ++v)
        finish_vector<vectors == 1>(c, tile.sum[r][v], bias, to + v * gap);
    }
  }
}

// This does not pay for images of few rows, nor for narrow images if vectors are narrow.
template <int tap_rows, int step>
bool shared(const Channel& c) {
  if (c.tap_rows != tap_rows || c.row_step != step || c.height < 4) return false;
  if (c.width > lanes) {
    shared_rows<tap_rows, step, 4, 2>(
        c, c.width >= 2 * lanes ? lanes : static_cast<int>(c.width) - lanes);
    return true;
  }
  if constexpr (lanes >= 8) {
    const bool sevens = (c.height + 6) / 7 * 7 < (c.height + 7) / 8 * 8;
    if (c.height >= 7 && sevens) shared_rows<tap_rows, step, 7, 1>(c, lanes);
    if (c.height >= 8 && !sevens) shared_rows<tap_rows, step, 8, 1>(c, lanes);
    return c.height >= 7;
  }
  return false;
}

void channel(const Channel& c) {
  if (c.height <= 0 || c.width <= 0) return;
  if (shared<3, 1>(c) || shared<3, 2>(c) || shared<5, 1>(c) || shared<5, 2>(c) || shared<7, 1>(c))
    return;
  if (c.width >= 4 * lanes) return channel_rows<2, 4>(c, lanes);
  if (c.width > lanes)
    return channel_rows<4, 2>(c, smaller(static_cast<int>(c.width) - lanes, lanes));
  if (c.width == lanes) return channel_rows<8, 1>(c, lanes);
  channel_rows<8, 1, true>(c, lanes);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#endif
