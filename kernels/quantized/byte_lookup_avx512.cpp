#include "taper/kernels/quantized/byte_loops.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace taper::quantized {
namespace {

// The table as words of two entries: an instruction looks up one of 64 words.
struct Words {
  __m512i quarter[4];

  TAPER_INLINE explicit Words(const int8_t* table) {
    for (int i = 0; i < 4; ++i) quarter[i] = _mm512_loadu_si512(table + 64 * i);
  }
  // Word i for the lowest seven bits i of each word; other bits do not matter.
  TAPER_INLINE __m512i at(__m512i i) const {
    const __m512i low = _mm512_permutex2var_epi16(quarter[0], i, quarter[1]),
                  high = _mm512_permutex2var_epi16(quarter[2], i, quarter[3]);
    return _mm512_mask_blend_epi16(_mm512_test_epi16_mask(i, _mm512_set1_epi16(64)), low, high);
  }
};

TAPER_INLINE __m512i looked_up(const Words& words, __m512i x) {
  constexpr __mmask64 odd = 0xaaaaaaaaaaaaaaaa;  // bytes
  const __m512i u = _mm512_xor_si512(x, _mm512_set1_epi8(static_cast<char>(128)));
  const __m512i of_even = words.at(_mm512_srli_epi16(u, 1)),
                of_odd = words.at(_mm512_srli_epi16(u, 9));
  const __m512i first = _mm512_mask_blend_epi8(odd, of_even, _mm512_slli_epi16(of_odd, 8)),
                second = _mm512_mask_blend_epi8(odd, _mm512_srli_epi16(of_even, 8), of_odd);
  return _mm512_mask_blend_epi8(_mm512_test_epi8_mask(u, _mm512_set1_epi8(1)), first, second);
}

}  // namespace

void lookup_avx512(index_t n, const int8_t* x, const int8_t* table, int8_t* y) {
  const Words words(table);
  index_t k = 0;
  for (; k + 64 <= n; k += 64)
    _mm512_storeu_si512(y + k, looked_up(words, _mm512_loadu_si512(x + k)));
  const __mmask64 rest = (uint64_t{1} << (n - k)) - 1;
  _mm512_mask_storeu_epi8(y + k, rest, looked_up(words, _mm512_maskz_loadu_epi8(rest, x + k)));
}

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
