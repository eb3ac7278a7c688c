// Vectors of AVX2 for block_tiles-inl.h. Each source includes this in a namespace of its own, and
// adds its sums: there is no #pragma once.
struct Avx2Lanes {
  static constexpr int lanes = 8, sums = 10, most_vectors = 2, most_rows = 4;
  static constexpr bool overlaps = false;
  static constexpr auto round = round_units_avx2;
  using F = __m256;
  using I = __m256i;
  using B = __m256i;

  static TAPER_INLINE F all(float x) { return _mm256_set1_ps(x); }
  static TAPER_INLINE F floats(const float* from) { return _mm256_loadu_ps(from); }
  static TAPER_INLINE F multiply(F a, F b) { return _mm256_mul_ps(a, b); }
  static TAPER_INLINE F multiply_add(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static TAPER_INLINE F negative(F a) { return _mm256_xor_ps(a, all(-0.0f)); }
  static TAPER_INLINE F to_float(I i) { return _mm256_cvtepi32_ps(i); }
  static TAPER_INLINE void store(F a, float* to) { _mm256_storeu_ps(to, a); }

  static TAPER_INLINE B load(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static TAPER_INLINE F from_halves(const std::byte* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static TAPER_INLINE F from_bytes(const std::byte* from) {
    return to_float(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
  static TAPER_INLINE F from_signed_bytes(const std::byte* from) {
    return to_float(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
  template <int i>
  static TAPER_INLINE F signed_byte(B b) {
    return to_float(_mm256_srai_epi32(_mm256_slli_epi32(b, 24 - 8 * i), 24));
  }

  static TAPER_INLINE B lower(B both) { return _mm256_and_si256(both, _mm256_set1_epi8(15)); }
  static TAPER_INLINE B upper(B both) { return lower(_mm256_srli_epi16(both, 4)); }
  /// Adds the two bits of `high` from `shift` on as bits 4 and 5.
  template <int shift>
  static TAPER_INLINE B with_high_bits(B low, B high) {
    const B bits = _mm256_and_si256(high, _mm256_set1_epi8(static_cast<char>(3 << shift)));
    const B moved = shift <= 4 ? _mm256_slli_epi16(bits, shift <= 4 ? 4 - shift : 0)
                               : _mm256_srli_epi16(bits, shift > 4 ? shift - 4 : 0);
    return _mm256_or_si256(low, moved);
  }
  static TAPER_INLINE B four(const int8_t* x) {
    int32_t bits;
    std::memcpy(&bits, x, sizeof bits);
    return _mm256_set1_epi32(bits);
  }
};
