#include <utility>

#include "taper/kernels/quantized/float_levels.h"
#include "taper/kernels/quantized/instruction_set.h"
#include "taper/kernels/quantized/table_rows.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avx2,fma,f16c")
namespace taper::quantized {
namespace {

struct Sixteen {
  __m256 half[2];

  static TAPER_INLINE Sixteen all(float x) { return {{_mm256_set1_ps(x), _mm256_set1_ps(x)}}; }
  static TAPER_INLINE Sixteen load(const float* from) {
    return {{_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}};
  }
  static TAPER_INLINE Sixteen from_halves(__m256i halves) {
    return {{_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
             _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))}};
  }
  static TAPER_INLINE Sixteen multiply(Sixteen a, Sixteen b) {
    return {{_mm256_mul_ps(a.half[0], b.half[0]), _mm256_mul_ps(a.half[1], b.half[1])}};
  }
  static TAPER_INLINE Sixteen multiply_add(Sixteen a, Sixteen b, Sixteen c) {
    return {{_mm256_fmadd_ps(a.half[0], b.half[0], c.half[0]),
             _mm256_fmadd_ps(a.half[1], b.half[1], c.half[1])}};
  }
  static TAPER_INLINE Sixteen add(Sixteen a, Sixteen b) {
    return {{_mm256_add_ps(a.half[0], b.half[0]), _mm256_add_ps(a.half[1], b.half[1])}};
  }
  static TAPER_INLINE void store(Sixteen a, float* to) {
    _mm256_storeu_ps(to, a.half[0]), _mm256_storeu_ps(to + 8, a.half[1]);
  }
};

struct Table {
  __m256 low, high;

  TAPER_INLINE explicit Table(const float* levels)
      : low(_mm256_loadu_ps(levels)), high(_mm256_loadu_ps(levels + 8)) {}
  TAPER_INLINE __m256 eight(__m128i index) const {
    const __m256i i = _mm256_cvtepu8_epi32(index);
    const __m256 is_high = _mm256_castsi256_ps(_mm256_slli_epi32(i, 28));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, i), _mm256_permutevar8x32_ps(high, i),
                            is_high);
  }
  TAPER_INLINE Sixteen of(__m128i index) const {
    return {{eight(index), eight(_mm_srli_si128(index, 8))}};
  }
};

#include "taper/kernels/quantized/table_rows-inl.h"

}  // namespace

void TableRows::multiply_avx2(const BlockMatrix& w, index_t first, const float* x, index_t x_row,
                              index_t rows, float* to) {
  multiply_table_rows(w, first, x, x_row, rows, to);
}

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
