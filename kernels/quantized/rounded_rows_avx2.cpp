#include <cmath>

#include "taper/kernels/quantized/instruction_set.h"
#include "taper/kernels/quantized/rounded_rows.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avx2,fma,f16c")
namespace taper::quantized {
namespace {

/// The bits of the largest magnitude. Those of infinity and NaN are above all others.
TAPER_INLINE int32_t largest_bits(const __m256 (&x)[4]) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i a[4];
  TAPER_UNROLL
  for (int i = 0; i < 4; ++i) a[i] = _mm256_and_si256(_mm256_castps_si256(x[i]), magnitude);
  const __m256i eight =
      _mm256_max_epi32(_mm256_max_epi32(a[0], a[1]), _mm256_max_epi32(a[2], a[3]));
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}

TAPER_INLINE void store(const __m256i (&q)[4], int8_t* values) {
  const __m256i in_lanes =
      _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(values),
                      _mm256_permutevar8x32_epi32(in_lanes, order));
}

/// Sets all of a unit. Its first half is in q[0] and q[1].
TAPER_INLINE void set_unit(RoundedUnit& unit, float scale, const __m256i (&q)[4]) {
  const __m256i pairs =
      _mm256_hadd_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
  const __m128i four =
      _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  const __m128i sums = _mm_hadd_epi32(four, four);  // first, other, first, other
  const __m128i all = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0xb1));
  const __m128 scales = _mm_set1_ps(scale);
  const __m128i weighted = _mm_blend_epi32(_mm_shuffle_epi32(sums, 0x50), all, 8);
  _mm_storeu_ps(&unit.scale,
                _mm_blend_ps(_mm_mul_ps(scales, _mm_cvtepi32_ps(weighted)), scales, 1));
  const __m128i without = _mm_blend_epi32(sums, all, 3);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&unit.without_8),
                   _mm_mullo_epi32(without, _mm_setr_epi32(-8, -128, -32, -32)));
}

TAPER_INLINE void round_one(const float* x, int8_t* values, RoundedUnit& unit) {
  __m256 of_x[4];
  TAPER_UNROLL
  for (int i = 0; i < 4; ++i) of_x[i] = _mm256_loadu_ps(x + 8 * i);
  const float largest = internal::from_bits(static_cast<uint32_t>(largest_bits(of_x)));
  if (!(largest >= 1e-30f && largest < HUGE_VALF)) return round_unit(x, values, unit);
  const __m256 inverse = _mm256_set1_ps(127 / largest);
  __m256i q[4];  // the current rounding mode is to nearest, halves to even
  TAPER_UNROLL
  for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(of_x[i], inverse));
  store(q, values);
  set_unit(unit, largest / 127, q);
}

}  // namespace

void round_units_avx2(const float* x, index_t count, int8_t* values, RoundedUnit* units) {
  for (index_t u = 0; u < count; ++u)
    round_one(x + u * unit_elements, values + u * unit_elements, units[u]);
}

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
