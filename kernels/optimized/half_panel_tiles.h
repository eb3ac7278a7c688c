// Rows times weights in panels of halves (panels.h): the innermost loops, once for each CPU level.
#pragma once
#include "taper/kernels/optimized/microkernel.h"

namespace taper::optimized {

/// A PanelTile for a packed b of halves (PackedHalves), which are widened. `b` is the start of a
/// panel, or of one of its pairs. Panels lie `b_panel` halves apart.
using HalfPanelTile = void (*)(index_t depth, const float* a, index_t a_row, index_t a_column,
                               const uint16_t* b, index_t b_panel, float* c, index_t c_row,
                               bool add, const float* bias, const NextPanels& next);

struct HalfPanelTiles {
  static constexpr int most_rows = 8, most_rows_of_long = 3;
  struct OfDtype {
    int rows, vectors;                ///< a `tile` has 1 … rows rows, and so many vectors
    HalfPanelTile tile[most_rows];    ///< [rows - 1]
    HalfPanelTile narrow[most_rows];  ///< one panel wide
    /// Tiles for few rows: so many vectors that the weights are read in long runs. They prefetch
    /// their own panels.
    struct Long {
      int vectors;
      HalfPanelTile tile;            ///< nullptr: none, the others do as well
    } long_tile[most_rows_of_long];  ///< [rows - 1]
  };
  OfDtype f16, bf16;
};

TAPER_DECLARE_LEVEL_TABLES(HalfPanelTiles, half_panel_tiles)

}  // namespace taper::optimized
