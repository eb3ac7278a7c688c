#include <cstring>
#include <utility>

#include "taper/kernels/quantized/byte_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86
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
TAPER_INLINE __m256i widened(__m128i bytes) { return _mm256_cvtepi8_epi16(bytes); }
TAPER_INLINE __m256i add_pairs(__m256i sum, __m256i x, __m256i w) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w));
}

#include "taper/kernels/quantized/avx2_bytes-inl.h"

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
        unrolled<pixels>(TAPER_EACH(r) { sum[r][v] = add_pairs(sum[r][v], q[r], weight); });
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

}  // namespace

constexpr ByteTiles byte_tiles_avx2 = {
    0, 3, 1, {{tile<1>, tile<2>, tile<3>, nullptr, nullptr, nullptr}, {}, {}, {}}, depthwise};

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
