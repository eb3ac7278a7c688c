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

}  // namespace

void round_unit_avx2(const float* x, int8_t* values, RoundedUnit& unit) {
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

  const __m256i pairs =
      _mm256_hadd_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
  const __m128i four =
      _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  const auto sums = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_hadd_epi32(four, four)));
  unit.scale = largest / 127;
  set_sums(unit, static_cast<int32_t>(sums), static_cast<int32_t>(sums >> 32));
}

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
