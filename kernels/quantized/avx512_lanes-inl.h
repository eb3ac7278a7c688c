// Vectors of AVX-512 for block_tiles-inl.h. Each source includes this in a namespace of its own,
// and adds its sums: there is no #pragma once.

struct Avx512Lanes {
  static constexpr int lanes = 16, sums = 24, most_vectors = 2, most_rows = 4;
  static constexpr bool overlaps = true;
  static constexpr auto round = round_units_avx2;
  using F = __m512;
  using I = __m512i;
  using B = __m512i;

  // Where GCC 12 warns of an uninitialized value in an intrinsic, its form with a mask is used.
  static constexpr __mmask16 every = 0xffff;

  static TAPER_INLINE F all(float x) { return _mm512_set1_ps(x); }
  static TAPER_INLINE F floats(const float* from) { return _mm512_loadu_ps(from); }
  static TAPER_INLINE F multiply(F a, F b) { return _mm512_mul_ps(a, b); }
  static TAPER_INLINE F multiply_add(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static TAPER_INLINE F negative(F a) {
    return _mm512_castsi512_ps(
        _mm512_xor_si512(_mm512_castps_si512(a), _mm512_set1_epi32(static_cast<int>(0x80000000))));
  }
  static TAPER_INLINE F to_float(I i) { return _mm512_maskz_cvtepi32_ps(every, i); }
  static TAPER_INLINE void store(F a, float* to) { _mm512_storeu_ps(to, a); }

  static TAPER_INLINE B load(const std::byte* from) { return _mm512_loadu_si512(from); }
  static TAPER_INLINE F from_halves(const std::byte* from) {
    return _mm512_maskz_cvtph_ps(every, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static TAPER_INLINE __m128i sixteen(const std::byte* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static TAPER_INLINE F from_bytes(const std::byte* from) {
    return to_float(_mm512_maskz_cvtepu8_epi32(every, sixteen(from)));
  }
  static TAPER_INLINE F from_signed_bytes(const std::byte* from) {
    return to_float(_mm512_maskz_cvtepi8_epi32(every, sixteen(from)));
  }
  template <int i>
  static TAPER_INLINE F signed_byte(B b) {
    const B first = i == 3 ? b : _mm512_maskz_slli_epi32(every, b, 24 - 8 * i);
    return to_float(_mm512_maskz_srai_epi32(every, first, 24));
  }

  static TAPER_INLINE B lower(B both) { return _mm512_and_si512(both, _mm512_set1_epi8(15)); }
  static TAPER_INLINE B upper(B both) { return lower(_mm512_srli_epi16(both, 4)); }
  /// Adds the two bits of `high` from `shift` on as bits 4 and 5.
  template <int shift>
  static TAPER_INLINE B with_high_bits(B low, B high) {
    const B bits = _mm512_and_si512(high, _mm512_set1_epi8(static_cast<char>(3 << shift)));
    const B moved = shift <= 4 ? _mm512_slli_epi16(bits, shift <= 4 ? 4 - shift : 0)
                               : _mm512_srli_epi16(bits, shift > 4 ? shift - 4 : 0);
    return _mm512_or_si512(low, moved);
  }
  static TAPER_INLINE B four(const int8_t* x) {
    int32_t bits;
    std::memcpy(&bits, x, sizeof bits);
    return _mm512_set1_epi32(bits);
  }
};
