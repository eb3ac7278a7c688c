#include <cstring>
#include <utility>

#include "taper/kernels/quantized/byte_tiles.h"
#include "taper/kernels/quantized/x86_lanes.h"

#if TAPER_BLOCK_TILES_X86
TAPER_BEGIN_TARGET("avx512vnni,avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/unrolled-inl.h"

// Where GCC 12 warns of an uninitialized value in an intrinsic, its form with a mask is used.
constexpr __mmask16 every = 0xffff;

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

// Sums become integers of 8 bits, in 32.
struct Rounder {
  __m512 low, high;
  __m512i zero_point;

  TAPER_INLINE explicit Rounder(const Rounding& r)
      : low(_mm512_set1_ps(r.low)),
        high(_mm512_set1_ps(r.high)),
        zero_point(_mm512_set1_epi32(r.zero_point)) {}
  TAPER_INLINE __m512i operator()(__m512i sum, __m512 scale) const {
    const __m512 y = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(every, sum), scale);
    // NaN becomes the second operand
    const __m512 clamped = _mm512_maskz_min_ps(every, _mm512_maskz_max_ps(every, y, low), high);
    return _mm512_add_epi32(_mm512_maskz_cvtps_epi32(every, clamped), zero_point);
  }
};

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
  unrolled<panels>(TAPER_EACH(v) {
    const __m512 scale = _mm512_loadu_ps(c.scale + v * BytePanels::rows);
    const index_t left = c.count - v * BytePanels::rows;
    unrolled<pixels>(TAPER_EACH(r) {
      const __m128i bytes = _mm512_maskz_cvtepi32_epi8(every, round(sum[r][v], scale));
      auto* to = reinterpret_cast<__m128i*>(c.to + r * c.to_pixel + v * BytePanels::rows);
      if (left >= BytePanels::rows)
        _mm_storeu_si128(to, bytes);
      else
        _mm_mask_storeu_epi8(to, static_cast<__mmask16>((1u << left) - 1), bytes);
    });
  });
}

// ---- depthwise ----
//
// 64 channels at a time. Bytes of four taps are interleaved within lanes of 128 bits. So vector a
// has channels 16 j + 4 a to 16 j + 4 a + 3 in lane j, and what belongs to them is brought into
// this order.

constexpr index_t block = 64;

struct Filters {
  alignas(64) int8_t weight[ByteTiles::most_depthwise_taps / 4][4][block];
  alignas(64) int32_t first[4][16];
  alignas(64) float scale[4][16];
};

void arrange(const ByteColumns& c, index_t channel, index_t vectors, Filters& f) {
  std::memset(static_cast<void*>(&f), 0, sizeof f);
  const index_t panel0 = channel / BytePanels::rows,
                left = BytePanels::panels_of(c.count - channel), panels = left < 4 ? left : 4;
  for (index_t j = 0; j < panels; ++j)
    for (int a = 0; a < 4; ++a) {
      const int8_t* from = c.weight + (panel0 + j) * c.panel_bytes + 16 * a;
      for (index_t g = 0; g < vectors; ++g)
        std::memcpy(f.weight[g][a] + 16 * j, from + g * BytePanels::vector_bytes, 16);
      const index_t at = (panel0 + j) * BytePanels::rows + 4 * a;
      std::memcpy(f.first[a] + 4 * j, c.first + at, 16);
      std::memcpy(f.scale[a] + 4 * j, c.scale + at, 16);
    }
}

/// The results of up to 64 channels. Places behind the last tap have weights 0.
TAPER_INLINE __m512i filtered(const int8_t* const* x, index_t pitch, index_t taps, index_t channel,
                              __mmask64 mask, const Filters& f, const Rounder& round) {
  __m512i sum[4];
  unrolled<4>(TAPER_EACH(a) { sum[a] = _mm512_load_si512(f.first[a]); });
  for (index_t t = 0, g = 0; t < taps; t += 4, ++g) {
    __m512i q[4];
    unrolled<4>(TAPER_EACH(i) {
      const index_t tap = t + i < taps ? t + i : taps - 1;
      q[i] = plus_128(_mm512_maskz_loadu_epi8(mask, x[tap * pitch] + channel));
    });
    const __m512i low01 = _mm512_unpacklo_epi8(q[0], q[1]),
                  high01 = _mm512_unpackhi_epi8(q[0], q[1]),
                  low23 = _mm512_unpacklo_epi8(q[2], q[3]),
                  high23 = _mm512_unpackhi_epi8(q[2], q[3]);
    const __m512i four_taps[4] = {
        _mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
        _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
    unrolled<4>(
        TAPER_EACH(a) { add_products(sum[a], four_taps[a], _mm512_load_si512(f.weight[g][a])); });
  }
  __m512i y[4];
  unrolled<4>(TAPER_EACH(a) { y[a] = round(sum[a], _mm512_load_ps(f.scale[a])); });
  return _mm512_packs_epi16(_mm512_packs_epi32(y[0], y[1]), _mm512_packs_epi32(y[2], y[3]));
}

void depthwise(const BytePixels& p, const ByteColumns& c, index_t pixels) {
  const Rounder round(c.rounding);
  Filters f;
  for (index_t channel = 0; channel < c.count; channel += block) {
    arrange(c, channel, BytePanels::vectors_of(p.taps), f);
    const index_t left = c.count - channel;
    const __mmask64 mask = left >= block ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    for (index_t r = 0; r < pixels; ++r) {
      const __m512i y = filtered(p.x + r, p.pitch, p.taps, channel, mask, f, round);
      int8_t* to = c.to + r * c.to_pixel + channel;
      if (left >= block)
        _mm512_storeu_si512(to, y);
      else
        _mm512_mask_storeu_epi8(to, mask, y);
    }
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
