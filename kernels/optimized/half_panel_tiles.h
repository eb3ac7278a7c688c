// Few rows times weights in panels of halves (panels.h): the innermost loops, once for each CPU
// level.
#pragma once
#include "taper/kernels/optimized/microkernel.h"

namespace taper::optimized {

/// A PanelTile for a packed b of halves (PackedHalves), which are widened. `b` is the start of a
/// panel, or of one of its pairs. Panels lie `b_panel` halves apart.
using HalfPanelTile = void (*)(index_t depth, const float* a, index_t a_row, index_t a_column,
                               const uint16_t* b, index_t b_panel, float* c, index_t c_row,
                               bool add);

struct HalfPanelTiles {
  static constexpr int most_rows = Microkernels::most_rows_of_long;
  struct OfRows {
    int vectors;                      ///< of `wide`
    HalfPanelTile wide, narrow;       ///< `narrow` is one panel wide
  } f16[most_rows], bf16[most_rows];  ///< [rows - 1]
  /// Widens `rows` rows of a panel of pairs to twice as many rows of f32.
  void (*widen_pairs)(index_t rows, const uint16_t* from, float* to);
};

TAPER_DECLARE_LEVEL_TABLES(HalfPanelTiles, half_panel_tiles)

}  // namespace taper::optimized
