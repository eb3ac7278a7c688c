// Products of bf16 with instructions that multiply pairs (AVX512-BF16): two multiply-adds in place
// of one of f32.
#pragma once
#include "taper/kernels/optimized/microkernel.h"

namespace taper::optimized {

/// Two neighbours along k; the first is the lower half. If k is odd, the upper half of the last
/// pair is zero.
using Pair = uint32_t;

/// A tile as in microkernel.h, over `depth` pairs of packed operands: a(r, p) = a[p * rows + r],
/// b(p, j) = b[j / lanes * b_vector + p * b_row + j % lanes]. An element is one chain over p
/// ascending. Each step adds two products and rounds to f32. Subnormal values count as zero, as in
/// the instruction. Vectors of `next` lie `b_vector` pairs apart.
using PairTile = void (*)(index_t depth, const Pair* a, const Pair* b, index_t b_vector,
                          index_t b_row, float* c, index_t c_row, bool add, const NextPanels& next);

struct PairTiles {
  /// [rows - 1][vectors - 1], like the tiles of Microkernels.
  PairTile tile[Microkernels::most_rows][Microkernels::most_vectors];
  /// For few rows: so wide that b is read in long runs. [rows - 1]
  struct Long {
    int vectors;
    PairTile tile;
  } long_tile[Microkernels::most_rows_of_long];
  /// to[i] = (even[i], odd[i]) for i in [0, count)
  void (*interleave)(index_t count, const BFloat16* even, const BFloat16* odd, Pair* to);
};

#if TAPER_X86_LEVELS
extern const PairTiles pair_tiles_avx512_bf16;
#endif

/// The tiles of a level. nullptr: this level multiplies bf16 as f32.
template <CpuLevel level>
constexpr const PairTiles* pair_tiles() {
#if TAPER_X86_LEVELS
  if constexpr (level == CpuLevel::avx512_bf16) return &pair_tiles_avx512_bf16;
#endif
  return nullptr;
}

}  // namespace taper::optimized
