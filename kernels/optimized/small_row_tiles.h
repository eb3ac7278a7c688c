// Few rows times dense columns of f16 or bf16: the innermost loops, once for each CPU level.
#pragma once
#include "taper/kernels/optimized/microkernel.h"

namespace taper::optimized {

/// A RowTile, with the same bits, for a b of small floats (f16 or bf16), and an a that is dense
/// along k. If `add`, the blocks are added to c, so that a long k can be computed in parts of whole
/// blocks.
using SmallRowTile = void (*)(index_t k, index_t depth_block, const float* a, index_t a_row,
                              const void* b, index_t b_column, index_t columns, float* c,
                              index_t c_row, bool add);

struct SmallRowTiles {
  static constexpr int most_rows = Microkernels::most_rows_of_long;
  SmallRowTile f16[most_rows], bf16[most_rows];  ///< [rows - 1]
};

TAPER_DECLARE_LEVEL_TABLES(SmallRowTiles, small_row_tiles)

}  // namespace taper::optimized
