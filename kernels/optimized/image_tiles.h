// The innermost loops of convolutions with channels first, beside those of microkernel.h: once for
// each CPU level.
#pragma once
#include "taper/kernels/optimized/microkernel.h"

namespace taper::optimized {

/// A Tile with exchanged roles: the rows of a lie anywhere, like the neighbours in an image, and
/// the rows of b lie at any distance:
///   a(r, k) = a[a_columns[k] + r]   vector v of b's row k begins at b[k * b_row + v * b_vector]
using TurnedTile = void (*)(index_t depth, const float* a, const index_t* a_columns, const float* b,
                            index_t b_row, index_t b_vector, float* c, index_t c_row, bool add);

/// One channel of a convolution with few inputs:
///   to(y, x) = activation(bias + sum over k of weight[k] from[offsets[k] + y * pitch + x])
/// k ascends, and the roundings are those of a Tile. A width below `lanes` is read as whole
/// vectors. The taps are blocks of `tap_rows` rows of `tap_columns`. If `row_step` is not 0, a row
/// of taps reads one image row below the row of taps that comes `row_step` before it in the block:
///   offsets[k + row_step * tap_columns] = offsets[k] + pitch
/// Then one load serves several rows of the result.
struct Channel {
  index_t taps, tap_rows, tap_columns, row_step;
  const float* weight;
  const index_t* offsets;
  const float* from;
  index_t pitch, height, width;
  float* to;
  index_t to_row;
  const float* bias;  ///< nullptr: none
  Activation activation;
};

/// Copies rows of an image with zeros around them. For i in [0, rows) and j in [0, columns), to[i *
/// columns + j] is from[(i - top) * from_row + (j - left) * step] inside [top, bottom) x [left,
/// right), else 0. `step` is positive. Up to `lanes` more zeros may be written behind the last row.
struct Padded {
  const float* from;
  index_t from_row, step;
  index_t top, bottom, rows;
  index_t left, right, columns;
  float* to;
};

struct ImageTiles {
  /// [rows - 1][vectors - 1], like the tiles of Microkernels.
  TurnedTile turned_tile[Microkernels::most_rows][Microkernels::most_vectors];
  void (*channel)(const Channel&);
  void (*pad)(const Padded&);
};

TAPER_DECLARE_LEVEL_TABLES(ImageTiles, image_tiles)

}  // namespace taper::optimized
