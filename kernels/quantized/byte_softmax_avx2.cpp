#include "taper/kernels/quantized/byte_loops.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avx2,fma,f16c")
namespace taper::quantized {
namespace {

constexpr index_t lanes = 32;
static_assert(softmax_is_looked_up_from >= lanes, "the last vector may overlap the one before it");
constexpr index_t smaller(index_t a, index_t b) { return a < b ? a : b; }

__m256i load(const int8_t* x) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)); }
int8_t largest(const int8_t* x, index_t n) {
  __m256i most = load(x);
  for (index_t i = lanes; i < n; i += lanes)
    most = _mm256_max_epi8(most, load(x + smaller(i, n - lanes)));
  __m128i half = _mm_max_epi8(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  // the smallest of bytes without a sign, in words: of 127 - x
  half = _mm_xor_si128(half, _mm_set1_epi8(0x7f));
  half = _mm_minpos_epu16(_mm_min_epu8(half, _mm_srli_epi16(half, 8)));
  return static_cast<int8_t>((_mm_cvtsi128_si32(half) & 0xff) ^ 0x7f);
}

// Loads of single numbers are faster than gathered ones.
int64_t sum_of(const int8_t* x, index_t n, int peak, const int32_t* exponentials) {
  int64_t sums[4] = {};
  index_t i = 0;
  for (; i + 4 <= n; i += 4)
    TAPER_UNROLL for (int k = 0; k < 4; ++k) sums[k] += exponentials[peak - x[i + k]];
  for (; i < n; ++i) sums[0] += exponentials[peak - x[i]];
  return sums[0] + sums[1] + sums[2] + sums[3];
}

/// The results of all distances, in parts of sixteen. Those behind the last part are `others`.
struct Results {
  alignas(32) int8_t of[256];
  int parts = 16;
  int8_t others;

  Results(const ByteLine& l, float factor, const Rounding& rounding) : others(rounding(0.0f)) {
    const __m256 by = _mm256_set1_ps(factor), low = _mm256_set1_ps(rounding.low),
                 high = _mm256_set1_ps(rounding.high), half = _mm256_set1_ps(0.5f);
    const __m256i zero_point = _mm256_set1_epi32(rounding.zero_point);
    for (int i = 0; i < 256; i += 16) {
      __m256i integers[2];
      int below = 0xff;
      for (int v = 0; v < 2; ++v) {
        const __m256i e =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(l.exponentials + i + 8 * v));
        const __m256 y = _mm256_mul_ps(_mm256_cvtepi32_ps(e), by);
        below &= _mm256_movemask_ps(_mm256_cmp_ps(y, half, _CMP_LT_OQ));
        // of NaN, the second operand remains; the limits are integers, so rounding may come last
        const __m256 clamped = _mm256_min_ps(_mm256_max_ps(y, low), high);
        integers[v] = _mm256_add_epi32(_mm256_cvtps_epi32(clamped), zero_point);
      }
      if (l.is_falling && below == 0xff) {
        parts = i / 16;
        return;
      }
      const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(integers[0], integers[1]),
                                                     _MM_SHUFFLE(3, 1, 2, 0));
      _mm_store_si128(
          reinterpret_cast<__m128i*>(of + i),
          _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
    }
  }
};

}  // namespace

// As in lookup_avx2, a shuffle gives 0 for a distance that lies in another part.
void softmax_avx2(const ByteLine& l, const Rounding& rounding, int8_t* y) {
  const int8_t peak = largest(l.x, l.count);
  const Results results(l, l.factor(sum_of(l.x, l.count, peak, l.exponentials)), rounding);
  const __m256i top = _mm256_set1_epi8(0x70), step = _mm256_set1_epi8(16),
                peaks = _mm256_set1_epi8(peak), others = _mm256_set1_epi8(results.others);
  __m256i part[16];
  for (int i = 0; i < results.parts; ++i)
    part[i] = _mm256_xor_si256(others, _mm256_broadcastsi128_si256(_mm_load_si128(
                                           reinterpret_cast<const __m128i*>(results.of + 16 * i))));
  for (index_t i = 0; i < l.count; i += lanes) {
    const index_t at = smaller(i, l.count - lanes);
    __m256i d = _mm256_sub_epi8(peaks, load(l.x + at)), found = others;
    for (int p = 0; p < results.parts; ++p) {
      found = _mm256_xor_si256(found, _mm256_shuffle_epi8(part[p], _mm256_adds_epu8(d, top)));
      d = _mm256_sub_epi8(d, step);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + at), found);
  }
}

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
