// The arithmetic of convolutions with channels last, once per CPU level. Vectors run along the
// channels of the results; the inputs of a pixel are broadcast.
#pragma once
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/panels.h"

namespace taper::optimized {

/// What happens to finished sums in registers: + bias, then x < low ? low : x > high ? high : x.
struct Finish {
  const float* bias = nullptr;  ///< of the first channel; nullptr: none
  bool is_bounded = false;
  float low = 0, high = 0;
};

/// A part of the sums of some pixels and some neighbouring channels:
///   to(p, j) = sum over k in [0, depth) of pixel[p][offset(k)] weight(k, j)
/// Each is one chain of fused multiply-adds from zero with k ascending (at the portable level of
/// x86, a product and a sum), then at most one addition to what `to` holds.
struct PixelSums {
  index_t depth;
  const int32_t* offsets;  ///< nullptr: offset(k) is first + k
  index_t first;
  const float* weight;  ///< in a panel: place k at k * panel_width
  index_t panel_step;   ///< from one panel to the next one
  index_t columns;      ///< channels; fewer than whole vectors are stored in part
  float* to;
  index_t to_pixel;      ///< from one pixel's results to the next one's
  bool adds;             ///< to what `to` holds
  const Finish* finish;  ///< nullptr: more parts follow
  NextPanels next;       ///< prefetched meanwhile; panels lie as those of `weight`
};
using PixelTile = void (*)(const PixelSums& sums, const float* const* pixel);

/// A row of results of a depthwise convolution. Taps that lie outside of the image meet zeros.
struct DepthwiseRow {
  static constexpr index_t most_tap_rows = 16;
  index_t tap_rows, tap_columns;
  const float* rows[most_tap_rows];   ///< the row of the image for each row of taps, or zeros
  index_t row_steps[most_tap_rows];   ///< from pixel to pixel; 0: `panel_width` zeros for all
  index_t stride, padding, dilation;  ///< along the row
  index_t width, result_width;        ///< pixels
  const float* weight;                ///< in panels: tap t of channel c at t * panel_width + c
  index_t channels;
  float* to;
  index_t to_pixel;
  Finish finish;
};

struct PixelTiles {
  static constexpr int most_pixels = 8, most_vectors = 3, wide_tiles = 2;

  int lanes;                 ///< floats of a vector
  int vectors;               ///< the most of a tile: a part of a panel, a panel, or several
  int pixels[most_vectors];  ///< the most of a tile: [vectors - 1]
  PixelTile tile[most_pixels][most_vectors];  ///< [pixels - 1][vectors - 1]
  /// Tiles of one pixel, so wide that the processor does not wait for its sums. The widest is
  /// first.
  struct Wide {
    int vectors;
    PixelTile tile;
  } wide[wide_tiles];
  void (*depthwise_row)(const DepthwiseRow& row);

  index_t columns() const { return index_t{lanes} * vectors; }
};

TAPER_DECLARE_LEVEL_TABLES(PixelTiles, pixel_tiles)
/// The same, but no depthwise window has tiles of its own that is larger than 3 x 3.
TAPER_DECLARE_LEVEL_TABLES(PixelTiles, pixel_tiles_of_threes)

}  // namespace taper::optimized
