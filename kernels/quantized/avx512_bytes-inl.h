// How sums of products become bytes with AVX-512. Each source includes this in a namespace of its
// own: there is no #pragma once.

// Where GCC 12 warns of an uninitialized value in an intrinsic, its form with a mask is used.
constexpr __mmask16 every = 0xffff;

// Four vectors of sums become integers of 8 bits. Packing works within lanes of 128 bits: lane j
// has four integers of each vector.
struct Rounder {
  __m512 high;
  __m512i zero_point, low;

  TAPER_INLINE explicit Rounder(const Rounding& r)
      : high(_mm512_set1_ps(r.high)),
        zero_point(_mm512_set1_epi16(static_cast<int16_t>(r.zero_point))),
        low(_mm512_set1_epi8(static_cast<char>(static_cast<int32_t>(r.low) + r.zero_point))) {}
  // NaN and what is too small become the lowest i32.
  TAPER_INLINE __m512i rounded(__m512i sum, __m512 scale) const {
    const __m512 y = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(every, sum), scale);
    return _mm512_maskz_cvtps_epi32(every, _mm512_maskz_min_ps(every, high, y));
  }
  TAPER_INLINE __m512i packed(const __m512i (&y)[4]) const {
    const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(y[0], y[1]), zero_point),
                  b = _mm512_adds_epi16(_mm512_packs_epi32(y[2], y[3]), zero_point);
    return _mm512_max_epi8(_mm512_packs_epi16(a, b), low);
  }
  // The integers of the first vector, then those of the second one.
  TAPER_INLINE __m512i in_order(const __m512i (&y)[4]) const {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_maskz_permutexvar_epi32(every, order, packed(y));
  }
};

// The first `count` bytes. Channels are often a multiple of 8.
TAPER_INLINE void store(__m512i bytes, index_t count, int8_t* to) {
  if (count >= 64) return _mm512_storeu_si512(to, bytes);
  __m256i half = _mm512_maskz_extracti64x4_epi64(0xff, bytes, 0);
  if ((count & 32) != 0) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), half), to += 32;
    half = _mm512_maskz_extracti64x4_epi64(0xff, bytes, 1);
  }
  __m128i rest = _mm256_castsi256_si128(half);
  if ((count & 16) != 0) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), rest), to += 16;
    rest = _mm256_extracti128_si256(half, 1);
  }
  if ((count & 8) != 0) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), rest), to += 8;
    rest = _mm_srli_si128(rest, 8);
  }
  auto last = static_cast<uint64_t>(_mm_cvtsi128_si64(rest));
  for (index_t i = count & 7; i > 0; --i, last >>= 8) *to++ = static_cast<int8_t>(last);
}
