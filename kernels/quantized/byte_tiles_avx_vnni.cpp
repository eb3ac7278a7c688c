#include <cstring>
#include <utility>

#include "taper/kernels/quantized/byte_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avxvnni,avx2,fma,f16c")
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/unrolled-inl.h"

// The instruction multiplies unsigned bytes with signed ones: q + 128 with the weights.
TAPER_INLINE __m256i four(const int8_t* x) {
  int32_t bits;
  std::memcpy(&bits, x, sizeof bits);
  return _mm256_set1_epi32(bits ^ static_cast<int32_t>(0x80808080));
}
TAPER_INLINE __m256i widened(__m128i bytes) {
  return _mm256_cvtepu8_epi16(_mm_xor_si128(bytes, _mm_set1_epi8(static_cast<char>(128))));
}
TAPER_INLINE __m256i add_pairs(__m256i sum, __m256i x, __m256i w) {
  return _mm256_dpwssd_avx_epi32(sum, x, w);
}

#include "taper/kernels/quantized/avx2_bytes-inl.h"

// One panel: two vectors of eight rows.
template <int pixels>
void tile(const BytePixels& p, const ByteColumns& c) {
  __m256i sum[pixels][2];
  unrolled<2>(TAPER_EACH(v) {
    const __m256i first = load(c.first + 8 * v);
    unrolled<pixels>(TAPER_EACH(r) { sum[r][v] = first; });
  });
  const auto* w = reinterpret_cast<const __m256i*>(c.weight);
  for (index_t t = 0; t < p.taps; ++t) {
    const int8_t* x[pixels];
    unrolled<pixels>(TAPER_EACH(r) { x[r] = p.x[t * p.pitch + r]; });
    for (index_t k = 0; k < p.vectors_of_tap; ++k, w += 2) {
      const __m256i weight[2] = {_mm256_loadu_si256(w), _mm256_loadu_si256(w + 1)};
      unrolled<pixels>(TAPER_EACH(r) {
        const __m256i q = four(x[r] + BytePanels::vector * k);
        unrolled<2>(
            TAPER_EACH(v) { sum[r][v] = _mm256_dpbusd_avx_epi32(sum[r][v], q, weight[v]); });
      });
    }
  }
  const Rounder round(c.rounding);
  unrolled<pixels>(TAPER_EACH(r) {
    store(round, sum[r][0], sum[r][1], c.scale, c.count, c.to + r * c.to_pixel);
  });
}

}  // namespace

constexpr ByteTiles byte_tiles_avx_vnni = {
    128, 6, 1, {{tile<1>, tile<2>, tile<3>, tile<4>, tile<5>, tile<6>}, {}, {}, {}}, depthwise};

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
