#include <cstring>
#include <utility>

#include "taper/kernels/quantized/byte_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avx512vnni,avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/avx512_bytes-inl.h"
#include "taper/kernels/quantized/unrolled-inl.h"

// The instruction multiplies unsigned bytes with signed ones: q + 128 with the weights.
TAPER_INLINE __m512i plus_128(__m512i q) {
  return _mm512_xor_si512(q, _mm512_set1_epi8(static_cast<char>(128)));
}
TAPER_INLINE __m512i four(const int8_t* x) {
  int32_t bits;
  std::memcpy(&bits, x, sizeof bits);
  return plus_128(_mm512_set1_epi32(bits));
}

// Adds products of unsigned bytes with signed ones. GCC 12 spills the sums of a tile if this is an
// intrinsic.
TAPER_INLINE void add_products(__m512i& sum, __m512i q_plus_128, __m512i weight) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(q_plus_128), "v"(weight));
}

template <int panels, int pixels>
void tile(const BytePixels& p, const ByteColumns& c) {
  __m512i sum[pixels][panels];
  unrolled<panels>(TAPER_EACH(v) {
    const __m512i first = _mm512_loadu_si512(c.first + v * BytePanels::rows);
    unrolled<pixels>(TAPER_EACH(r) { sum[r][v] = first; });
  });
  const int8_t* w = c.weight;
  for (index_t t = 0; t < p.taps; ++t) {
    const int8_t* x[pixels];
    unrolled<pixels>(TAPER_EACH(r) { x[r] = p.x[t * p.pitch + r]; });
    for (index_t k = 0; k < p.vectors_of_tap; ++k, w += BytePanels::vector_bytes) {
      __m512i weight[panels];
      unrolled<panels>(TAPER_EACH(v) { weight[v] = _mm512_loadu_si512(w + v * c.panel_bytes); });
      unrolled<pixels>(TAPER_EACH(r) {
        const __m512i q = four(x[r] + BytePanels::vector * k);
        unrolled<panels>(TAPER_EACH(v) { add_products(sum[r][v], q, weight[v]); });
      });
    }
  }
  const Rounder round(c.rounding);
  unrolled<pixels>(TAPER_EACH(r) {
    __m512i y[4] = {};
    unrolled<panels>(TAPER_EACH(v) {
      y[v] = round.rounded(sum[r][v], _mm512_loadu_ps(c.scale + v * BytePanels::rows));
    });
    store(round.in_order(y), c.count, c.to + r * c.to_pixel);
  });
}

// ---- depthwise ----
//
// 64 channels at a time, or 32 of two pixels. Bytes of four taps are interleaved within lanes of
// 128 bits. So vector a has channels 16 j + 4 a to 16 j + 4 a + 3 in lane j, and what belongs to
// them is brought into this order.

struct Filters {
  alignas(64) int8_t weight[ByteTiles::most_depthwise_taps / 4][4][64];
  alignas(64) int32_t first[4][16];
  alignas(64) float scale[4][16];
};

// `lanes`: the panels of one pixel, 4 or 2.
void arrange(const ByteColumns& c, index_t channel, index_t lanes, index_t vectors, Filters& f) {
  const index_t panel0 = channel / BytePanels::rows,
                panels = BytePanels::panels_of(c.count - channel);
  for (index_t j = 0; j < 4; ++j) {
    // a lane without channels computes those of the last panel, which nobody stores
    const index_t panel = panel0 + (j % lanes < panels ? j % lanes : panels - 1);
    for (int a = 0; a < 4; ++a) {
      const int8_t* from = c.weight + panel * c.panel_bytes + 16 * a;
      for (index_t g = 0; g < vectors; ++g)
        std::memcpy(f.weight[g][a] + 16 * j, from + g * BytePanels::vector_bytes, 16);
      const index_t at = panel * BytePanels::rows + 4 * a;
      std::memcpy(f.first[a] + 4 * j, c.first + at, 16);
      std::memcpy(f.scale[a] + 4 * j, c.scale + at, 16);
    }
  }
}

// Loads 64 channels of a pixel, or 32 of two pixels. Only the first `mask` ones are read.
template <bool two>
TAPER_INLINE __m512i load(const int8_t* a, const int8_t* b, __mmask64 mask) {
  if constexpr (!two) return _mm512_maskz_loadu_epi8(mask, a);
  const auto half = static_cast<__mmask32>(mask);
  return _mm512_mask_broadcast_i64x4(
      _mm512_maskz_broadcast_i64x4(0xff, _mm256_maskz_loadu_epi8(half, a)), 0xf0,
      _mm256_maskz_loadu_epi8(half, b));
}

// Four bytes of each channel, in the order of vectors that `arrange` gives.
struct Interleaved {
  __m512i vector[4];

  TAPER_INLINE explicit Interleaved(const __m512i (&q)[4]) {
    const __m512i low01 = _mm512_unpacklo_epi8(q[0], q[1]),
                  high01 = _mm512_unpackhi_epi8(q[0], q[1]),
                  low23 = _mm512_unpacklo_epi8(q[2], q[3]),
                  high23 = _mm512_unpackhi_epi8(q[2], q[3]);
    vector[0] = _mm512_unpacklo_epi16(low01, low23),
    vector[1] = _mm512_unpackhi_epi16(low01, low23);
    vector[2] = _mm512_unpacklo_epi16(high01, high23);
    vector[3] = _mm512_unpackhi_epi16(high01, high23);
  }
};

TAPER_INLINE __m512i rounded(const __m512i (&sum)[4], const Filters& f, const Rounder& round) {
  __m512i y[4];
  unrolled<4>(TAPER_EACH(a) { y[a] = round.rounded(sum[a], _mm512_load_ps(f.scale[a])); });
  return round.packed(y);
}

// The results at pixel x[0], or at two of them. Places behind the last tap have weights 0.
template <bool two, class Vectors>
TAPER_INLINE __m512i filtered(const int8_t* const* x, index_t second, index_t pitch, index_t taps,
                              Vectors vectors, index_t channel, __mmask64 mask, const Filters& f,
                              const Rounder& round) {
  __m512i sum[4];
  unrolled<4>(TAPER_EACH(a) { sum[a] = _mm512_load_si512(f.first[a]); });
  for (index_t g = 0; g < vectors; ++g) {
    __m512i q[4];
    unrolled<4>(TAPER_EACH(i) {
      const index_t t = 4 * g + i, tap = (t < taps ? t : taps - 1) * pitch;
      q[i] = plus_128(load<two>(x[tap] + channel, x[tap + second] + channel, mask));
    });
    const Interleaved four_taps(q);
    unrolled<4>(TAPER_EACH(a) {
      add_products(sum[a], four_taps.vector[a], _mm512_load_si512(f.weight[g][a]));
    });
  }
  return rounded(sum, f, round);
}

TAPER_INLINE __m512i low_bits(__m512i v, int mask) {
  return _mm512_and_si512(v, _mm512_set1_epi32(mask));
}
TAPER_INLINE __m512i up(__m512i v, unsigned bits) {
  return _mm512_maskz_slli_epi32(every, v, bits);
}
TAPER_INLINE __m512i down(__m512i v, unsigned bits) {
  return _mm512_maskz_srli_epi32(every, v, bits);
}

// Three rows of three taps, for two neighbouring pixels: in a row, their four inputs are loaded
// once. The first pixel has the weights (w0, w1, w2, 0), the second one (0, w0, w1, w2).
struct RowsOfThree {
  alignas(64) int8_t weight[3][2][4][64];

  void set(const Filters& f) {
    for (int a = 0; a < 4; ++a) {
      const __m512i taps[3] = {_mm512_load_si512(f.weight[0][a]), _mm512_load_si512(f.weight[1][a]),
                               _mm512_load_si512(f.weight[2][a])};
      const __m512i rows[3] = {low_bits(taps[0], 0xffffff),
                               _mm512_or_si512(down(taps[0], 24), up(low_bits(taps[1], 0xffff), 8)),
                               _mm512_or_si512(down(taps[1], 16), up(low_bits(taps[2], 0xff), 16))};
      for (int k = 0; k < 3; ++k) {
        _mm512_store_si512(weight[k][0][a], rows[k]);
        _mm512_store_si512(weight[k][1][a], up(rows[k], 8));
      }
    }
  }
};

// Whether the taps of pixel x[1] lie one place behind those of x[0].
TAPER_INLINE bool are_neighbours(const int8_t* const* x, index_t pitch) {
  bool are = true;
  for (index_t t = 0; t < 9; t += 3)
    are = are && x[(t + 1) * pitch] == x[t * pitch + 1] &&
          x[(t + 2) * pitch] == x[(t + 1) * pitch + 1];
  return are;
}

// The results at pixels x[0] and x[1]; if `two`, those at x[2] and x[3] follow theirs.
template <bool two>
TAPER_INLINE void filter_neighbours(const int8_t* const* x, index_t pitch, index_t channel,
                                    __mmask64 mask, const Filters& f, const RowsOfThree& rows,
                                    const Rounder& round, __m512i (&y)[2]) {
  constexpr index_t second = two ? 2 : 0;
  __m512i sum[2][4];
  unrolled<4>(TAPER_EACH(a) { sum[0][a] = sum[1][a] = _mm512_load_si512(f.first[a]); });
  for (index_t k = 0; k < 3; ++k) {
    __m512i q[4];
    unrolled<4>(TAPER_EACH(i) {
      const int8_t* const* const tap = x + (3 * k + (i < 3 ? i : 2)) * pitch + (i < 3 ? 0 : 1);
      q[i] = plus_128(load<two>(tap[0] + channel, tap[second] + channel, mask));
    });
    const Interleaved four(q);
    unrolled<4>(TAPER_EACH(a) {
      add_products(sum[0][a], four.vector[a], _mm512_load_si512(rows.weight[k][0][a]));
      add_products(sum[1][a], four.vector[a], _mm512_load_si512(rows.weight[k][1][a]));
    });
  }
  y[0] = rounded(sum[0], f, round), y[1] = rounded(sum[1], f, round);
}

TAPER_INLINE __m512i upper(__m512i y) { return _mm512_maskz_shuffle_i64x2(0xff, y, y, 0xee); }

// `rows`: nullptr where there are not nine taps.
template <bool two, class Vectors>
void filter_block(const BytePixels& p, const ByteColumns& c, index_t pixels, Vectors vectors,
                  index_t channel, const Filters& f, const RowsOfThree* rows) {
  const Rounder round(c.rounding);
  constexpr index_t block = two ? 32 : 64;
  const index_t left = c.count - channel, count = left < block ? left : block;
  const __mmask64 mask = count == 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
  for (index_t r = 0; r < pixels;) {
    int8_t* to = c.to + r * c.to_pixel + channel;
    const int8_t* const* const x = p.x + r;
    constexpr index_t at_once = two ? 4 : 2;
    if (rows != nullptr && r + at_once <= pixels && are_neighbours(x, p.pitch) &&
        (!two || are_neighbours(x + 2, p.pitch))) {
      __m512i y[2];
      filter_neighbours<two>(x, p.pitch, channel, mask, f, *rows, round, y);
      for (int i = 0; i < 2; ++i) {
        store(y[i], count, to + i * c.to_pixel);
        if constexpr (two) store(upper(y[i]), count, to + (2 + i) * c.to_pixel);
      }
      r += at_once;
      continue;
    }
    const index_t second = two && r + 1 < pixels ? 1 : 0;
    const __m512i y = filtered<two>(x, second, p.pitch, p.taps, vectors, channel, mask, f, round);
    store(y, count, to);
    if (second != 0) store(upper(y), count, to + c.to_pixel);
    r += two ? 2 : 1;
  }
}

void depthwise(const BytePixels& p, const ByteColumns& c, index_t pixels) {
  using Three = std::integral_constant<index_t, 3>;  // of 3 x 3 taps
  const index_t vectors = BytePanels::vectors_of(p.taps);
  Filters f;
  RowsOfThree of_three;
  for (index_t channel = 0; channel < c.count;) {
    const bool two = c.count - channel <= 32;
    arrange(c, channel, two ? 2 : 4, vectors, f);
    const RowsOfThree* const rows = p.taps == 9 ? &of_three : nullptr;
    if (rows != nullptr) of_three.set(f);
    if (two)
      vectors == 3 ? filter_block<true>(p, c, pixels, Three(), channel, f, rows)
                   : filter_block<true>(p, c, pixels, vectors, channel, f, rows);
    else
      vectors == 3 ? filter_block<false>(p, c, pixels, Three(), channel, f, rows)
                   : filter_block<false>(p, c, pixels, vectors, channel, f, rows);
    channel += two ? 32 : 64;
  }
}

#define TAPER_TILES(panels)                                                              \
  {                                                                                      \
    tile<panels, 1>, tile<panels, 2>, tile<panels, 3>, tile<panels, 4>, tile<panels, 5>, \
        tile<panels, 6>                                                                  \
  }

}  // namespace

constexpr ByteTiles byte_tiles_avx512_vnni = {
    128, 6, 4, {TAPER_TILES(1), TAPER_TILES(2), TAPER_TILES(3), TAPER_TILES(4)}, depthwise};

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
