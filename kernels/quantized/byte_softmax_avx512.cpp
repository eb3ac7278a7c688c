#include "taper/kernels/quantized/byte_loops.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace taper::quantized {
namespace {
// Where GCC 12 warns of an uninitialized value in an intrinsic, its form with a mask is used.
constexpr __mmask16 all = 0xffff;
constexpr __mmask32 all_words = 0xffffffff;

constexpr index_t lanes = 32;                   // bytes that are looked up at once, as words
constexpr index_t most_at_once = lanes * 8192;  // so many fit into sums of 32 bits

/// Where the low words of 32 numbers are, or the high ones.
struct Indices {
  int16_t word[lanes];
  constexpr explicit Indices(int half) : word() {
    for (int i = 0; i < lanes; ++i) word[i] = static_cast<int16_t>(2 * i + half);
  }
};
/// Words of 16 numbers and of 16 others, the low or the high ones.
template <int half>
TAPER_INLINE __m512i halves(__m512i a, __m512i b) {
  alignas(64) static constexpr Indices of(half);
  return _mm512_permutex2var_epi16(a, _mm512_load_si512(of.word), b);
}

/// 256 words, of which permutations of 64 look up any.
struct Words {
  __m512i part[8];

  /// `index` are words below 256.
  TAPER_INLINE __m512i at(__m512i index) const {
    const __mmask32 odd = _mm512_test_epi16_mask(index, _mm512_set1_epi16(64)),
                    high = _mm512_test_epi16_mask(index, _mm512_set1_epi16(128));
    __m512i found[4];
    TAPER_UNROLL for (int i = 0; i < 4; ++i) found[i] =
        _mm512_permutex2var_epi16(part[2 * i], index, part[2 * i + 1]);
    return _mm512_mask_blend_epi16(high, _mm512_mask_blend_epi16(odd, found[0], found[1]),
                                   _mm512_mask_blend_epi16(odd, found[2], found[3]));
  }
};

TAPER_INLINE __mmask32 first_lanes(index_t count) {
  return count < lanes ? (__mmask32{1} << count) - 1 : ~__mmask32{0};
}
/// peak - x for the lanes of `mask`.
TAPER_INLINE __m512i distances(const int8_t* x, __m512i peak, __mmask32 mask) {
  return _mm512_sub_epi16(peak, _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(mask, x)));
}

int8_t largest(const int8_t* x, index_t n) {
  __m256i most = _mm256_set1_epi8(-128);
  for (index_t i = 0; i < n; i += lanes)
    most = _mm256_mask_max_epi8(most, first_lanes(n - i), most,
                                _mm256_maskz_loadu_epi8(first_lanes(n - i), x + i));
  __m128i half = _mm_max_epi8(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  // the smallest of bytes without a sign, in words: of 127 - x
  half = _mm_xor_si128(half, _mm_set1_epi8(0x7f));
  half = _mm_minpos_epu16(_mm_min_epu8(half, _mm_srli_epi16(half, 8)));
  return static_cast<int8_t>((_mm_cvtsi128_si32(half) & 0xff) ^ 0x7f);
}

int64_t sum_of_lanes(__m512i v) {
  alignas(64) int32_t lane[16];
  _mm512_store_si512(lane, v);
  int64_t sum = 0;
  for (const int32_t x : lane) sum += x;
  return sum;
}

/// The exponentials are cut into two words: e = 65536 high + low.
int64_t sum_of(const int8_t* x, index_t n, __m512i peak, const int32_t* exponentials) {
  Words high, low;
  TAPER_UNROLL for (int i = 0; i < 8; ++i) {
    const __m512i a = _mm512_loadu_si512(exponentials + lanes * i),
                  b = _mm512_loadu_si512(exponentials + lanes * i + lanes / 2);
    high.part[i] = halves<1>(a, b);
    // products of words have signs, so 32768 is subtracted here, and added to the sum again
    low.part[i] = _mm512_xor_si512(halves<0>(a, b), _mm512_set1_epi16(-32768));
  }
  const __m512i one = _mm512_set1_epi16(1);
  int64_t sum = 0;
  for (index_t first = 0; first < n; first += most_at_once) {
    const index_t end = n - first < most_at_once ? n : first + most_at_once;
    __m512i highs = _mm512_setzero_si512(), lows = _mm512_setzero_si512();
    for (index_t i = first; i < end; i += lanes) {
      const __mmask32 mask = first_lanes(end - i);
      const __m512i d = distances(x + i, peak, mask);
      highs =
          _mm512_add_epi32(highs, _mm512_madd_epi16(_mm512_maskz_mov_epi16(mask, high.at(d)), one));
      lows =
          _mm512_add_epi32(lows, _mm512_madd_epi16(_mm512_maskz_mov_epi16(mask, low.at(d)), one));
    }
    sum += 65536 * sum_of_lanes(highs) + sum_of_lanes(lows) + 32768 * (end - first);
  }
  return sum;
}

}  // namespace

void softmax_avx512(const ByteLine& l, const Rounding& rounding, int8_t* y) {
  const __m512i peak = _mm512_set1_epi16(largest(l.x, l.count));
  const __m512 factor = _mm512_set1_ps(l.factor(sum_of(l.x, l.count, peak, l.exponentials)));
  const __m512 low = _mm512_set1_ps(rounding.low), high = _mm512_set1_ps(rounding.high);
  const __m512i zero_point = _mm512_set1_epi32(rounding.zero_point);
  const auto results = [&](const int32_t* exponentials) {
    const __m512 e = _mm512_maskz_cvtepi32_ps(all, _mm512_loadu_si512(exponentials));
    // of NaN, the second operand remains; the limits are integers, so rounding may come last
    const __m512 clamped =
        _mm512_maskz_min_ps(all, _mm512_maskz_max_ps(all, _mm512_mul_ps(e, factor), low), high);
    return _mm512_add_epi32(_mm512_maskz_cvtps_epi32(all, clamped), zero_point);
  };
  Words of;  // each distance
  TAPER_UNROLL for (int i = 0; i < 8; ++i) of.part[i] = halves<0>(
      results(l.exponentials + lanes * i), results(l.exponentials + lanes * i + lanes / 2));
  for (index_t i = 0; i < l.count; i += lanes) {
    const __mmask32 mask = first_lanes(l.count - i);
    _mm256_mask_storeu_epi8(
        y + i, mask, _mm512_maskz_cvtepi16_epi8(all_words, of.at(distances(l.x + i, peak, mask))));
  }
}

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
