#include "taper/kernels/optimized/pair_tiles.h"

#include <utility>

#if TAPER_X86_LEVELS
#include <immintrin.h>

namespace taper::optimized {
namespace {

#define TAPER_UNROLL _Pragma("GCC unroll 12")
constexpr index_t lanes = 16, ahead = Microkernels::rows_ahead;

// `is_long`: for few rows, it prefetches its own vectors.
template <int rows, int vectors, bool is_long = false>
__attribute__((target("avx512f,avx512bw,avx512bf16"))) void tile(index_t depth, const Pair* a,
                                                                 const Pair* b, index_t b_vector,
                                                                 index_t b_row, float* c,
                                                                 index_t c_row, bool add,
                                                                 const NextPanels& next_panels) {
  const char* next = reinterpret_cast<const char*>(next_panels.from);
  const index_t next_step = next_panels.step,
                next_vector = b_vector * static_cast<index_t>(sizeof(Pair));
  __m512 sum[rows][vectors];
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_setzero_ps();
  for (index_t p = 0; p < depth; ++p, a += rows, b += b_row) {
    __m512bh column[vectors];
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v)
      if constexpr (is_long)
        __builtin_prefetch(b + v * b_vector + ahead * b_row);
      else
        __builtin_prefetch(next + v * next_vector);
    if constexpr (!is_long) next += next_step;
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v)
      column[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + v * b_vector));
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) {
      const __m512bh row = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a[r])));
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], row, column[v]);
    }
  }
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r, c += c_row) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) {
    float* to = c + v * lanes;
    _mm512_storeu_ps(to, add ? _mm512_add_ps(_mm512_loadu_ps(to), sum[r][v]) : sum[r][v]);
  }
}

// These intrinsics get a mask of all lanes. In those without a mask, GCC 12 warns of an
// uninitialized value.
#define TAPER_TARGET __attribute__((target("avx512f,avx512bw")))
constexpr unsigned short all = 0xffff;

TAPER_TARGET __m512i widened(const BFloat16* from) {
  return _mm512_maskz_cvtepu16_epi32(all,
                                     _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
TAPER_TARGET void interleave(index_t count, const BFloat16* even, const BFloat16* odd, Pair* to) {
  index_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const __m512i upper = _mm512_maskz_slli_epi32(all, widened(odd + i), 16);
    _mm512_storeu_si512(to + i, _mm512_or_si512(widened(even + i), upper));
  }
  for (; i < count; ++i) to[i] = static_cast<Pair>(odd[i].bits) << 16 | even[i].bits;
}

template <size_t... r>
constexpr PairTiles make_table(std::index_sequence<r...>) {
  return {
      {{tile<r + 1, 1>, tile<r + 1, 2>}...},
      {{8, tile<1, 8, true>}, {8, tile<2, 8, true>}, {5, tile<3, 5, true>}, {4, tile<4, 4, true>}},
      interleave};
}

}  // namespace

constexpr PairTiles pair_tiles_avx512_bf16 =
    make_table(std::make_index_sequence<Microkernels::most_rows>());

}  // namespace taper::optimized
#endif
