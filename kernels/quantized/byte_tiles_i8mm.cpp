#include <cstring>
#include <utility>

#include "taper/kernels/quantized/byte_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_ARM64
TAPER_BEGIN_TARGET(TAPER_I8MM)
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/unrolled-inl.h"

TAPER_INLINE void add_products(int32x4_t& sum, int8x16_t w, int8x16_t x) {
  TAPER_ADD_DOT_PRODUCTS(sum, w, x);
}

#include "taper/kernels/quantized/neon_bytes-inl.h"
#include "taper/kernels/quantized/neon_pairs-inl.h"

/// Four bytes of two rows of x, and zeros.
TAPER_INLINE int8x16_t four_of(const int8_t* x, const int8_t* other) {
  int32_t bits[4] = {};
  std::memcpy(&bits[0], x, sizeof bits[0]), std::memcpy(&bits[2], other, sizeof bits[2]);
  return vreinterpretq_s8_s32(vld1q_s32(bits));
}

// One panel, and pairs of pixels. The last one of an odd number is a pair with itself.
template <int pixels>
void tile_of_pairs(const BytePixels& p, const ByteColumns& c) {
  constexpr int pairs = (pixels + 1) / 2, last = pixels - 1, step = 2 * BytePanels::vector_bytes;
  PairSums sum[pairs][4];
  unrolled<4>(TAPER_EACH(v) {
    const int32x4_t first = vld1q_s32(c.first + 4 * v);
    unrolled<pairs>(TAPER_EACH(r) { sum[r][v].begin(first, first); });
  });
  const int8_t* w = c.weight;
  for (index_t t = 0; t < p.taps; ++t) {
    const int8_t* x[2 * pairs];
    unrolled<2 * pairs>(TAPER_EACH(r) { x[r] = p.x[t * p.pitch + (r < pixels ? r : last)]; });
    index_t k = 0;
    for (; k + 1 < p.vectors_of_tap; k += 2, w += step) {
      int8x16_t eight[pairs];
      unrolled<pairs>(TAPER_EACH(r) {
        eight[r] =
            eight_of(x[2 * r] + BytePanels::vector * k, x[2 * r + 1] + BytePanels::vector * k);
      });
      unrolled<4>(TAPER_EACH(v) {
        const RowPairs rows(vld1q_s8(w + 16 * v), vld1q_s8(w + BytePanels::vector_bytes + 16 * v));
        unrolled<pairs>(TAPER_EACH(r) { sum[r][v].add(rows, eight[r]); });
      });
    }
    if (k == p.vectors_of_tap) continue;
    unrolled<4>(TAPER_EACH(v) {
      const RowPairs rows(vld1q_s8(w + 16 * v), vdupq_n_s8(0));
      unrolled<pairs>(TAPER_EACH(r) {
        sum[r][v].add(rows, four_of(x[2 * r] + BytePanels::vector * k,
                                    x[2 * r + 1] + BytePanels::vector * k));
      });
    });
    w += BytePanels::vector_bytes;
  }
  const Rounder round(c.rounding);
  unrolled<pixels>(TAPER_EACH(r) {
    int32x4_t sums[4];
    unrolled<4>(TAPER_EACH(v) {
      const PairSums& both = sum[r / 2][v];
      sums[v] = r % 2 == 0 ? both.of_first() : both.of_other();
    });
    store(round, sums, c.scale, c.count, c.to + r * c.to_pixel);
  });
}

}  // namespace

constexpr ByteTiles byte_tiles_i8mm = {0,
                                       6,
                                       1,
                                       {{tile<1>, tile_of_pairs<2>, tile_of_pairs<3>,
                                         tile_of_pairs<4>, tile_of_pairs<5>, tile_of_pairs<6>},
                                        {},
                                        {},
                                        {}},
                                       depthwise};

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
