// The innermost loops of matrix products and convolutions, once for each CPU level. A program links
// whole tables. So kernels that need a few of the loops name a smaller table, and loops that only
// some kernels call have tables of their own: small_row_tiles.h, half_panel_tiles.h and
// image_tiles.h.
#pragma once
#include "taper/kernels/optimized/levels.h"

namespace taper::optimized {

enum class Activation : uint8_t { none, relu };

/// The last step of a product: y = activation(alpha product + beta addend). Each operation is
/// rounded.
struct Epilogue {
  float alpha = 1, beta = 1;
  const float* addend = nullptr;  ///< nullptr: none; otherwise element (row, column) is
  index_t addend_row = 0,
          addend_column = 0;  ///<   addend[row * addend_row + column * addend_column]
  Activation activation = Activation::none;

  bool is_identity() const {
    return alpha == 1 && addend == nullptr && activation == Activation::none;
  }
};

/// A tile of a product: c = a b, or c += a b if `add`. a is (rows, depth), b is (depth, vectors *
/// lanes), and
///   a(r, k) = a[k * rows + r]       packed by `pack`
///   b(k, j) = b[b_rows[k] + j]      rows of b may lie anywhere: packed, or in an image. As hints
///                                   for prefetching, `rows_ahead` more entries are read
///   c(r, j) = c[r * c_row + j]
/// Each element is one chain of fused multiply-adds from zero with k ascending. (The portable level
/// of x86 has no FMA: there it is a product and a sum.) Then c is added at most once. So the bits
/// are the same in every tile, whatever its size.
using Tile = void (*)(index_t depth, const float* a, const float* b, const index_t* b_rows,
                      float* c, index_t c_row, bool add);

/// The same for an a that is not packed: a(r, k) = a[r * a_row + k].
using TileInPlace = void (*)(index_t depth, const float* a, index_t a_row, const float* b,
                             const index_t* b_rows, float* c, index_t c_row, bool add);

/// A part of the panels that are multiplied next: `from`, in the first of them, is prefetched
/// first, and then `step` bytes further for every k. The other panels lie as those of the tile.
struct NextPanels {
  const float* from;
  index_t step;
};

/// The same for any strided matrix a, and a packed b (panels.h) whose pointer is the first element
/// of a vector: a(r, k) = a[r * a_row + k * a_column]. Panels lie `b_panel` floats apart. A tile
/// that is wider than a panel begins at the start of one. At the end, `bias` is added to each row
/// if it is not nullptr. Meanwhile the tile prefetches what is multiplied next.
using PanelTile = void (*)(index_t depth, const float* a, index_t a_row, index_t a_column,
                           const float* b, index_t b_panel, float* c, index_t c_row, bool add,
                           const float* bias, const NextPanels& next);

/// Copies a strided matrix (depth, across): to[k * to_row + i] = from[i * across_stride + k *
/// depth_stride].
using Pack = void (*)(const float* from, index_t across_stride, index_t depth_stride,
                      index_t across, index_t depth, float* to, index_t to_row);

/// For few rows of a, and a b with dense columns, like the transpose of a weight. Computes
/// `columns` columns of the rows of c, and reads b where it lies. a(r, k) = a[r * a_row + k *
/// a_column], b(k, j) = b[k + j * b_column]. The sums over k are blocks of `depth_block`, added in
/// order. So the bits are those of tiles that are called block by block.
using RowTile = void (*)(index_t k, index_t depth_block, const float* a, index_t a_row,
                         index_t a_column, const float* b, index_t b_column, index_t columns,
                         float* c, index_t c_row);

struct Microkernels {
  static constexpr int most_rows = 12, most_vectors = 2, most_lanes = 16, most_panel_vectors = 3,
                       most_rows_of_long = 4, rows_ahead = 8;
  static constexpr int most_floats = most_rows * most_vectors * most_lanes;  ///< of a tile

  int lanes;                           ///< floats of a vector
  int rows;                            ///< a tile has 1 … rows rows
  int vectors;                         ///< and 1 … vectors vectors
  Tile tile[most_rows][most_vectors];  ///< [rows - 1][vectors - 1]
  TileInPlace tile_in_place[most_rows][most_vectors];
  int panel_rows, panel_vectors;  ///< the same for a packed b, whose tiles may have another shape
  PanelTile panel_tile[most_rows][most_panel_vectors];
  /// Tiles for few rows. Their time is spent on reading b once from memory, so they read it in long
  /// runs.
  struct Long {
    int vectors;
    Tile tile;
  } long_tile[most_rows_of_long];  ///< [rows - 1]
  struct LongPanel {
    int vectors;
    PanelTile tile;                      ///< nullptr: none, a panel_tile does as well
  } long_panel_tile[most_rows_of_long];  ///< the same for a packed b
  RowTile row_tile[most_rows_of_long];   ///< [rows - 1]
  Pack pack;
  /// Copies `columns` columns of some rows to c, or adds them. Rows of `from` are `width` floats,
  /// which is whole vectors.
  void (*narrow)(index_t rows, const float* from, index_t width, index_t columns, float* c,
                 index_t c_row, bool add);
  void (*finish)(index_t rows, index_t columns, float* c, index_t c_row, const Epilogue& epilogue);
  float (*sum)(const float* from, index_t count);  ///< the order depends only on `count`

  int columns() const { return lanes * vectors; }
  int panel_columns() const { return lanes * panel_vectors; }
};

/// All of them.
TAPER_DECLARE_LEVEL_TABLES(Microkernels, microkernels)
/// Those for a packed b, and no other tiles: the linker keeps what a table names.
TAPER_DECLARE_LEVEL_TABLES(Microkernels, panel_microkernels)
/// Of these the ones for a single row of a.
TAPER_DECLARE_LEVEL_TABLES(Microkernels, row_microkernels)
/// Only `pack`, and that for panels.
TAPER_DECLARE_LEVEL_TABLES(Microkernels, packing_microkernels)

}  // namespace taper::optimized
