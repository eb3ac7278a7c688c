#include <utility>

#include "taper/kernels/quantized/float_levels.h"
#include "taper/kernels/quantized/instruction_set.h"
#include "taper/kernels/quantized/table_rows.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace taper::quantized {
namespace {

// Where GCC 12 warns of an uninitialized value in an intrinsic, its form with a mask is used.
constexpr __mmask16 every = 0xffff;

struct Sixteen {
  __m512 all_rows;

  static TAPER_INLINE Sixteen all(float x) { return {_mm512_set1_ps(x)}; }
  static TAPER_INLINE Sixteen load(const float* from) { return {_mm512_loadu_ps(from)}; }
  static TAPER_INLINE Sixteen from_halves(__m256i halves) {
    return {_mm512_maskz_cvtph_ps(every, halves)};
  }
  static TAPER_INLINE Sixteen multiply(Sixteen a, Sixteen b) {
    return {_mm512_mul_ps(a.all_rows, b.all_rows)};
  }
  static TAPER_INLINE Sixteen multiply_add(Sixteen a, Sixteen b, Sixteen c) {
    return {_mm512_fmadd_ps(a.all_rows, b.all_rows, c.all_rows)};
  }
  static TAPER_INLINE Sixteen add(Sixteen a, Sixteen b) {
    return {_mm512_add_ps(a.all_rows, b.all_rows)};
  }
  static TAPER_INLINE void store(Sixteen a, float* to) { _mm512_storeu_ps(to, a.all_rows); }
};

struct Table {
  __m512 levels;

  TAPER_INLINE explicit Table(const float* from) : levels(_mm512_loadu_ps(from)) {}
  TAPER_INLINE Sixteen of(__m128i index) const {
    return {_mm512_maskz_permutexvar_ps(every, _mm512_maskz_cvtepu8_epi32(every, index), levels)};
  }
};

#include "taper/kernels/quantized/table_rows-inl.h"

}  // namespace

void TableRows::multiply_avx512(const BlockMatrix& w, index_t first, const float* x, index_t x_row,
                                index_t rows, float* to) {
  multiply_table_rows(w, first, x, x_row, rows, to);
}

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
