// Rounded rows times weights in panels of blocks: the innermost loops, once for each instruction
// set.
#pragma once
#include "taper/kernels/quantized/panels.h"
#include "taper/kernels/quantized/rounded_rows.h"

namespace taper::quantized {

/// Multiplies `rows` rows of x, the first of them `row`, with one panel of w or several:
///
///   y = 0
///   for each unit, and for each half of it where the scales of halves differ:
///     y = fma(w.scale * x.scale, sum of integer products, y)
///     y = fma(w.offset, x.weighted, y)                        where there are offsets
///
/// The sums of integers are exact. So a result has the same bits for any number of rows, any layout
/// and any instruction set with fused multiply-adds. to[r * panel_width + i] is the product of row
/// r and row i of the panel.
using BlockTile = void (*)(const BlockMatrix& w, index_t panel, const RoundedRows& x, index_t row,
                           float* to);

/// Writes the elements of a panel as f32: element k of row i to to[k * panel_width + i]. The values
/// are those of BlockMatrix::row.
using UnpackPanel = void (*)(const BlockMatrix& w, index_t panel, float* to);

/// Multiplies rows of x, `x_row` elements apart, with the elements of panels `panel` and `other`.
/// As in kernels/optimized/gemm.h, 256 places are one chain of multiply-adds, and chains are added
/// in order. Row r of x times row i of a panel p comes to to[(p * rows + r) * panel_width + i].
using MultiplyPanels = void (*)(const BlockMatrix& w, index_t panel, index_t other, const float* x,
                                index_t x_row, float* to);

struct BlockTiles {
  static constexpr int most_rows = 8, most_panels = 2;
  struct OfFormat {
    BlockTile one_panel[most_rows], two_panels[most_rows];  ///< [rows - 1]
    UnpackPanel unpack;
    MultiplyPanels multiply[3];  ///< of 1, 2 and 4 rows
  } of_format[5];                ///< in the order of the layouts
  RoundUnits round;

  const OfFormat& of(Layout layout) const {
    return of_format[static_cast<int>(layout) - static_cast<int>(Layout::q4_0_panels)];
  }
};

extern const BlockTiles block_tiles_avx2, block_tiles_avx_vnni, block_tiles_avx512,
    block_tiles_avx512_vnni;
extern const BlockTiles block_tiles_neon, block_tiles_dotprod, block_tiles_i8mm;

}  // namespace taper::quantized
