#include <cstring>
#include <utility>

#include "taper/kernels/quantized/byte_tiles.h"
#include "taper/kernels/quantized/x86_lanes.h"

#if TAPER_BLOCK_TILES_X86
TAPER_BEGIN_TARGET("avx2,fma,f16c")
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/unrolled-inl.h"

// Bytes are widened to 16 bits, and sums of two products have 32: nothing saturates.
TAPER_INLINE __m256i sixteen(const int8_t* from) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
TAPER_INLINE __m256i four(const int8_t* x) {
  int32_t bits;
  std::memcpy(&bits, x, sizeof bits);
  return _mm256_cvtepi8_epi16(_mm_set1_epi32(bits));
}
TAPER_INLINE __m256i load(const int32_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// Sums become integers of 8 bits.
struct Rounder {
  __m256 low, high;
  __m256i zero_point;

  TAPER_INLINE explicit Rounder(const Rounding& r)
      : low(_mm256_set1_ps(r.low)),
        high(_mm256_set1_ps(r.high)),
        zero_point(_mm256_set1_epi32(r.zero_point)) {}
  TAPER_INLINE __m256i operator()(__m256i sum, const float* scale) const {
    const __m256 y = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(scale));
    // NaN becomes the second operand
    const __m256 clamped = _mm256_min_ps(_mm256_max_ps(y, low), high);
    return _mm256_add_epi32(_mm256_cvtps_epi32(clamped), zero_point);
  }
};

// Stores `count` of 16 results, whose sums are two vectors.
TAPER_INLINE void store(const Rounder& round, __m256i sum0, __m256i sum1, const float* scale,
                        index_t count, int8_t* to) {
  // packing works within halves: 0-3, 8-11 and 4-7, 12-15
  const __m256i shorts = _mm256_packs_epi32(round(sum0, scale), round(sum1, scale + 8));
  const __m256i ordered = _mm256_permute4x64_epi64(shorts, 0xd8);
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
  if (count >= BytePanels::rows) return _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  int8_t here[BytePanels::rows];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(here), bytes);
  std::memcpy(to, here, static_cast<size_t>(count));
}

// One panel. A vector of sums has two sums for each of four rows.
template <int pixels>
void tile(const BytePixels& p, const ByteColumns& c) {
  __m256i sum[pixels][4];
  unrolled<pixels>(
      TAPER_EACH(r) { unrolled<4>(TAPER_EACH(v) { sum[r][v] = _mm256_setzero_si256(); }); });
  const int8_t* w = c.weight;
  for (index_t t = 0; t < p.taps; ++t) {
    const int8_t* x[pixels];
    unrolled<pixels>(TAPER_EACH(r) { x[r] = p.x[t * p.pitch + r]; });
    for (index_t k = 0; k < p.vectors_of_tap; ++k, w += BytePanels::vector_bytes) {
      __m256i q[pixels];
      unrolled<pixels>(TAPER_EACH(r) { q[r] = four(x[r] + BytePanels::vector * k); });
      unrolled<4>(TAPER_EACH(v) {
        const __m256i weight = sixteen(w + 16 * v);
        unrolled<pixels>(TAPER_EACH(r) {
          sum[r][v] = _mm256_add_epi32(sum[r][v], _mm256_madd_epi16(q[r], weight));
        });
      });
    }
  }
  const Rounder round(c.rounding);
  unrolled<pixels>(TAPER_EACH(r) {
    const auto whole = TAPER_EACH(h) {
      const __m256i pairs = _mm256_hadd_epi32(sum[r][2 * h], sum[r][2 * h + 1]);
      return _mm256_add_epi32(_mm256_permute4x64_epi64(pairs, 0xd8), load(c.first + 8 * h));
    };
    store(round, whole(std::integral_constant<int, 0>()), whole(std::integral_constant<int, 1>()),
          c.scale, c.count, c.to + r * c.to_pixel);
  });
}

// ---- depthwise: 16 channels at a time, and the taps in pairs ----

struct Filters {
  alignas(32) int16_t weight[ByteTiles::most_depthwise_taps / 2][2][16];
};

void arrange(const int8_t* panel, index_t pairs, Filters& f) {
  for (index_t g = 0; g < pairs; ++g)
    for (int i = 0; i < 32; ++i)  // channel i / 2, tap 2 g + i % 2
      f.weight[g][i / 16][i % 16] =
          panel[g / 2 * BytePanels::vector_bytes + i / 2 * 4 + g % 2 * 2 + i % 2];
}

void depthwise(const BytePixels& p, const ByteColumns& c, index_t pixels) {
  const Rounder round(c.rounding);
  Filters f;
  const index_t pairs = (p.taps + 1) / 2;
  for (index_t channel = 0; channel < c.count; channel += BytePanels::rows) {
    arrange(c.weight + channel / BytePanels::rows * c.panel_bytes, pairs, f);
    for (index_t r = 0; r < pixels; ++r) {
      __m256i sum[2] = {load(c.first + channel), load(c.first + channel + 8)};
      for (index_t g = 0; g < pairs; ++g) {
        const index_t second = 2 * g + 1 < p.taps ? 2 * g + 1 : 2 * g;
        const auto bytes = [&](index_t tap) {
          return _mm_loadu_si128(
              reinterpret_cast<const __m128i*>(p.x[tap * p.pitch + r] + channel));
        };
        const __m128i a = bytes(2 * g), b = bytes(second);
        const __m256i low = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b)),
                      high = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b));
        const auto* weight = reinterpret_cast<const __m256i*>(f.weight[g]);
        sum[0] = _mm256_add_epi32(sum[0], _mm256_madd_epi16(low, _mm256_load_si256(weight)));
        sum[1] = _mm256_add_epi32(sum[1], _mm256_madd_epi16(high, _mm256_load_si256(weight + 1)));
      }
      store(round, sum[0], sum[1], c.scale + channel, c.count - channel,
            c.to + r * c.to_pixel + channel);
    }
  }
}

}  // namespace

constexpr ByteTiles byte_tiles_avx2 = {
    0, 3, 1, {{tile<1>, tile<2>, tile<3>, nullptr, nullptr, nullptr}, {}, {}, {}}, depthwise};

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
