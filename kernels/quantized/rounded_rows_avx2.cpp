#include "taper/kernels/quantized/instruction_set.h"
#include "taper/kernels/quantized/rounded_rows.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avx2,fma,f16c")
namespace taper::quantized {
namespace {

constexpr int at_once = 4;  // units: one would wait for each of its steps

// The largest magnitudes of eight places of a unit, as bits. Those of infinity and NaN are above
// all others.
TAPER_INLINE __m256i largest_of_eight(const float* x) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i a[4];
  TAPER_UNROLL
  for (int i = 0; i < 4; ++i)
    a[i] = _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + 8 * i)), magnitude);
  return _mm256_max_epi32(_mm256_max_epi32(a[0], a[1]), _mm256_max_epi32(a[2], a[3]));
}
/// The largest magnitudes of the units, as bits.
TAPER_INLINE __m128i largest_of(const float* x) {
  __m256i m[at_once];
  TAPER_UNROLL
  for (int u = 0; u < at_once; ++u) m[u] = largest_of_eight(x + u * unit_elements);
  TAPER_UNROLL
  for (int u = 0; u < at_once; u += 2)
    m[u] = _mm256_max_epi32(_mm256_unpacklo_epi32(m[u], m[u + 1]),
                            _mm256_unpackhi_epi32(m[u], m[u + 1]));
  const __m256i both =
      _mm256_max_epi32(_mm256_unpacklo_epi64(m[0], m[2]), _mm256_unpackhi_epi64(m[0], m[2]));
  return _mm_max_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
}

/// Rounds one unit. Gives the sums of four integers each: two of the first half, two of the other
/// half, and so on.
TAPER_INLINE __m256i round_values(const float* x, __m256 inverse, int8_t* values) {
  __m256i q[4];  // the current rounding mode is to nearest, halves to even
  TAPER_UNROLL
  for (int i = 0; i < 4; ++i)
    q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), inverse));
  const __m256i in_lanes =
      _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(values),
                      _mm256_permutevar8x32_epi32(in_lanes, order));
  return _mm256_hadd_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
}

/// From sums of two units: the first half of one, its other half, and those of the next unit.
TAPER_INLINE __m128 halves_of(__m256i unit, __m256i next) {
  const __m256i both = _mm256_hadd_epi32(unit, next);
  return _mm_castsi128_ps(
      _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1)));
}
template <int bits>
TAPER_INLINE __m128 minus_shifted(__m128i sums) {
  return _mm_castsi128_ps(_mm_sub_epi32(_mm_setzero_si128(), _mm_slli_epi32(sums, bits)));
}
/// Stores element u of a, b, c and d to `to` of unit u.
TAPER_INLINE void store_turned(__m128 a, __m128 b, __m128 c, __m128 d, void* to) {
  auto* bytes = static_cast<std::byte*>(to);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  const __m128 turned[at_once] = {a, b, c, d};
  TAPER_UNROLL
  for (int u = 0; u < at_once; ++u)
    _mm_storeu_ps(reinterpret_cast<float*>(bytes + u * sizeof(RoundedUnit)), turned[u]);
}

/// What elements of the units are multiplied with, and the scales of the units.
struct Scales {
  __m128 inverse, scale;
  bool are_finite;
};
TAPER_INLINE Scales scales_of(const float* x) {
  const __m128i bits = largest_of(x),
                are_finite = _mm_cmplt_epi32(bits, _mm_set1_epi32(0x7f800000));
  const __m128 largest = _mm_castsi128_ps(bits), most = _mm_set1_ps(127);
  const __m128 is_rounded = _mm_cmpge_ps(largest, _mm_set1_ps(1e-30f));  // others become zeros
  return {_mm_and_ps(is_rounded, _mm_div_ps(most, largest)),
          _mm_and_ps(is_rounded, _mm_div_ps(largest, most)),
          _mm_movemask_ps(_mm_castsi128_ps(are_finite)) == 15};
}

TAPER_INLINE void round_some(const float* x, const Scales& of_x, int8_t* values,
                             RoundedUnit* units) {
  alignas(16) float inverse[at_once];
  _mm_store_ps(inverse, of_x.inverse);
  const __m128 scale = of_x.scale;
  __m256i sums[at_once];
  TAPER_UNROLL
  for (int u = 0; u < at_once; ++u)
    sums[u] = round_values(x + u * unit_elements, _mm256_broadcast_ss(inverse + u),
                           values + u * unit_elements);
  const __m128 low = halves_of(sums[0], sums[1]), high = halves_of(sums[2], sums[3]);
  const __m128i first = _mm_castps_si128(_mm_shuffle_ps(low, high, 0x88)),
                other = _mm_castps_si128(_mm_shuffle_ps(low, high, 0xdd)),
                all = _mm_add_epi32(first, other);
  store_turned(scale, _mm_mul_ps(scale, _mm_cvtepi32_ps(first)),
               _mm_mul_ps(scale, _mm_cvtepi32_ps(other)), _mm_mul_ps(scale, _mm_cvtepi32_ps(all)),
               &units->scale);
  store_turned(minus_shifted<3>(all), minus_shifted<7>(all), minus_shifted<5>(first),
               minus_shifted<5>(other), &units->without_8);
}

}  // namespace

void round_units_avx2(const float* x, index_t count, int8_t* values, RoundedUnit* units) {
  constexpr index_t elements = at_once * unit_elements;
  if (count >= at_once) {
    Scales scales = scales_of(x);
    for (; count >= at_once; count -= at_once) {
      const Scales next = scales_of(count >= 2 * at_once ? x + elements : x);  // while these wait
      if (scales.are_finite)
        round_some(x, scales, values, units);
      else
        round_units(x, at_once, values, units);
      scales = next, x += elements, values += elements, units += at_once;
    }
  }
  round_units(x, count, values, units);
}

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
