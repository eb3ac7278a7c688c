// The transforms of Winograd's F(2x2, 3x3), once per CPU level. Vectors run along the channels.
#pragma once
#include "taper/kernels/optimized/pixel_tiles.h"
#include "taper/kernels/portable/winograd.h"

namespace taper::optimized {

/// The 4 x 4 inputs below a tile, for all channels.
struct WinogradInput {
  const float* rows[4];  ///< the first of the four pixels; outside of the image: zeros
  index_t row_steps[4];  ///< from pixel to pixel; 0: `panel_width` zeros for all
  index_t left, right;   ///< the pixels [left, right) lie inside of the image
  index_t channels;
  float* to;  ///< Bᵀ d B: place p of channel c at p * to_place + c; whole vectors
  index_t to_place;
};

/// The sums of a tile, for some channels.
struct WinogradOutput {
  const float* from;  ///< place p of channel c at p * from_place + c
  index_t from_place;
  index_t channels;
  float* to;
  index_t to_row, to_pixel;
  index_t rows, columns;  ///< of the tile's results, that lie inside of the image: 1 or 2
  Finish finish;
};

struct WinogradTransforms {
  void (*input)(const WinogradInput&);
  void (*output)(const WinogradOutput&);
};

TAPER_DECLARE_LEVEL_TABLES(WinogradTransforms, winograd_transforms)

/// Filters (n, c, 3, 3) in Layout::winograd_panels. 0 bytes for other weights, and for fewer than
/// sixteen filters.
size_t bytes_of_winograd_panels(const TensorRef& filters);
/// Packs filters that are dense, or dense halves. `small` widens halves.
void pack_winograd_panels(const TensorRef& filters, const portable::SmallFloats& small,
                          void* packed);
/// One panel of every matrix: the filters from 16 * `panel` on.
void pack_winograd_panel(const TensorRef& filters, const portable::SmallFloats& small,
                         index_t panel, float* packed);

}  // namespace taper::optimized
