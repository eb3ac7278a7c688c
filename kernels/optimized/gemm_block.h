// A block of a matrix product: the work of one task. Only gemm.cpp includes this.
#pragma once
#include <cstring>

#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/packing.h"
#include "taper/kernels/optimized/panels.h"
#include "taper/kernels/optimized/tasks.h"

namespace taper::optimized {

struct GemmScratch {
  float* a;         ///< panels of (depth, rows of a tile)
  float* b;         ///< panels of (depth, columns of a tile)
  index_t* b_rows;  ///< where each row of a panel of b begins
  float* sums;      ///< c as f32, (row_block, column_block), if c holds small floats
  float* piece;     ///< memory for widened small floats, piece by piece
};

struct GemmBlock {
  /// So many panels of (gemm_depth_block, columns of a tile) of b are packed at a time, so that
  /// memory is read in long runs. While they are multiplied, the next ones are prefetched.
  static constexpr index_t panels_at_once = 8;

  const Microkernels& kernels;
  const SmallRowTiles* small_rows;
  const HalfPanelTiles* half_panels;
  const PairTiles* pairs;  ///< nullptr: f32 is multiplied
  index_t k;               ///< that of the whole product
  Operand a, b;            ///< from the block's first row, and its first column, on
  PackedMatrix packed;  ///< in place of b: all columns; those of the block begin at packed_column
  PackedHalves halves;  ///< the same for b in halves; there a panel begins
  index_t packed_column;
  float* c;  ///< the first element of the block
  index_t c_row;
  index_t rows, columns;
  Epilogue epilogue;
  GemmScratch scratch;
  EvenParts row_panels{rows,
                       ceil_div(rows, packed.data != nullptr ? kernels.panel_rows : kernels.rows)};

  /// Computes c, as f32.
  // All loops give the same bits. Pairs have only one loop.
  void run() const {
    const bool few_rows = rows <= Microkernels::most_rows_of_long,
               dense_columns = b.depth_stride == 1 && b.across_stride != 1;
    if (packed.data != nullptr)
      run_panels();
    else if (halves.data != nullptr && pairs != nullptr)
      run_pair_panels();
    else if (halves.data != nullptr)
      run_half_panels();
    else if (few_rows && dense_columns && pairs == nullptr)
      b.is_small() ? run_along_small_columns() : run_along_columns();
    else if (!b.is_small() && b.across_stride == 1 && rows <= kernels.rows)
      run_in_place();
    else
      run_packed();
  }

  /// The same for a b that was packed at load: each panel of a meets a panel of b, or several
  /// beside each other.
  void run_panels() const {
    const bool packs_a = this->packs_a();
    const index_t across = packs_a ? 1 : a.across_stride;
    const float* const bias = bias_of_columns();
    const auto columns_at = [&](index_t j) {
      const Microkernels::LongPanel* const wide = long_panel_at(j);
      const index_t vectors = wide != nullptr ? wide->vectors : kernels.panel_vectors;
      return smaller(vectors * kernels.lanes, columns - j);
    };
    for_each_block(columns_at, [&](index_t k, index_t j, index_t here) {
      const index_t depth = this->depth(k), vectors = ceil_div(here, kernels.lanes);
      const Microkernels::LongPanel* const wide = long_panel_at(j);
      const bool is_last = k + depth == this->k,
                 in_tile = bias != nullptr && here == vectors * kernels.lanes;
      const PrefetchOfPanels prefetch = prefetch_behind(k, j, j + here, depth, panels());
      const float* const panel = packed.at(packed_column + j, k);
      for (index_t p = 0; p < panels(); ++p) {
        if (packs_a && j == 0) pack_a(k, p);
        const index_t rows = rows_of(p), row = first(p);
        const float* const from = packs_a ? scratch.a + row * depth : a.floats(row, k);
        place_rows(
            vectors, row, rows, k, j, here,
            [&](float* sums, index_t width, bool adds) {
              (wide != nullptr ? wide->tile : kernels.panel_tile[rows - 1][vectors - 1])(
                  depth, from, across, packs_a ? rows : a.depth_stride, panel,
                  packed.panel_floats(), sums, width, adds, is_last && in_tile ? bias + j : nullptr,
                  prefetch.of_tile(p));
            },
            in_tile);
      }
    });
  }

 private:
  // With at most so many panels of columns, a is not packed.
  static constexpr index_t few_panels = 4;

  // A part (depth, columns) of b, from row k and column j of the block on.
  struct Source {
    index_t k, j, depth, columns;
  };

  index_t panels() const { return row_panels.count; }
  index_t first(index_t panel) const { return row_panels.begin(panel); }
  index_t rows_of(index_t panel) const { return row_panels.length(panel); }
  index_t depth(index_t k) const { return smaller(gemm_depth_block, this->k - k); }
  // rows of a panel: of floats, or of pairs
  index_t length(index_t depth) const { return pairs != nullptr ? ceil_div(depth, 2) : depth; }

  void pack(const Operand& operand, index_t i, index_t k, index_t across, index_t depth, float* to,
            index_t to_row) const {
    if (pairs != nullptr)
      pack_pairs(kernels, *pairs, operand, i, k, across, depth, reinterpret_cast<Pair*>(to), to_row,
                 scratch.piece);
    else
      optimized::pack(kernels, operand, i, k, across, depth, to, to_row, scratch.piece);
  }

  // Row k of a block of b lies at b_rows[k].
  void set_b_rows(index_t stride) const {
    for (index_t i = 0; i < smaller(gemm_depth_block, k) + Microkernels::rows_ahead; ++i)
      scratch.b_rows[i] = i * stride;
  }

  // Packs panel p of a. Prefetches the next panel, which is packed after a tile.
  void pack_a(index_t k, index_t p) const {
    pack(a, first(p), k, rows_of(p), depth(k), scratch.a + first(p) * length(depth(k)), rows_of(p));
    if (a.depth_stride != 1 || p + 1 == panels()) return;
    for (index_t r = first(p + 1); r < first(p + 1) + rows_of(p + 1); ++r)
      a.prefetch(r, k, depth(k));
  }

  // Packs a block of b as panels. If the rows of b are contiguous, it packs a few rows of all
  // panels at a time. If the columns are, it packs whole columns.
  void pack_b(const Source& s) const {
    const index_t width = kernels.columns(), length = this->length(s.depth);
    const index_t rows = b.depth_stride == 1 ? s.depth : 16;
    if (s.columns % width != 0)
      std::memset(scratch.b + s.columns / width * width * length, 0,
                  static_cast<size_t>(width * length) * sizeof(float));
    for (index_t k = 0; k < s.depth; k += rows)
      for (index_t j = 0; j < s.columns; j += width)
        pack(b, s.j + j, s.k + k, smaller(width, s.columns - j), smaller(rows, s.depth - k),
             scratch.b + j * length + this->length(k) * width, width);
  }

  // Prefetches part i of `parts` parts of a block of b.
  void prefetch_b(const Source& s, index_t parts, index_t i) const {
    const bool by_rows = b.across_stride == 1;
    if (!by_rows && b.depth_stride != 1) return;
    const index_t runs = by_rows ? s.depth : s.columns;
    for (index_t run = part_begin(runs, parts, i); run < part_begin(runs, parts, i + 1); ++run)
      b.prefetch(s.j + (by_rows ? 0 : run), s.k + (by_rows ? run : 0),
                 by_rows ? s.columns : s.depth);
  }

  // Whether there are so few columns that packing a would take longer than reading it where it
  // lies.
  bool reads_a_in_place() const {
    return pairs == nullptr && !a.is_small() && a.depth_stride == 1 &&
           columns <= few_panels * kernels.columns();
  }

  // With at most so many rows, packed panels are read from their start to their end: in the longest
  // runs, which memory gives fastest. a is read again for each panel, so it must be small. Tiles
  // that are narrower than a panel would read it several times.
  static constexpr index_t most_rows_down = 16;
  bool runs_down() const {
    const bool whole_panels = halves.data != nullptr || kernels.panel_columns() >= panel_width;
    return rows <= most_rows_down && whole_panels && pairs == nullptr && !packs_a();
  }

  // Calls body(k, j, columns) for all blocks of packed panels, whose width is columns_at(j). More
  // rows share blocks of a, which stay in the cache for all columns.
  template <class Columns, class Body>
  void for_each_block(const Columns& columns_at, const Body& body) const {
    const auto along = [&](index_t k) {
      for (index_t j = 0; j < columns; j += columns_at(j)) body(k, j, columns_at(j));
    };
    const auto down = [&](index_t j) {
      for (index_t k = 0; k == 0 || k < this->k; k += gemm_depth_block) body(k, j, columns_at(j));
    };
    if (runs_down())
      for (index_t j = 0; j < columns; j += columns_at(j)) down(j);
    else
      for (index_t k = 0; k == 0 || k < this->k; k += gemm_depth_block) along(k);
  }

  // What `tiles` tiles of so many steps prefetch: the block behind (k, j), whose columns end at
  // `end`. A line of a panel holds a place of floats, or two of halves.
  PrefetchOfPanels prefetch_behind(index_t k, index_t j, index_t end, index_t steps,
                                   index_t tiles) const {
    if (runs_down()) {
      k += gemm_depth_block;
      if (k >= this->k) k = 0, j = end;
    } else {
      j = end;
      if (j >= columns) j = 0, k += gemm_depth_block;
    }
    const bool is_last = k >= this->k || j >= columns;
    if (is_last) j = k = 0;
    const float* const from = packed.data != nullptr
                                  ? packed.at(packed_column + j, k)
                                  : reinterpret_cast<const float*>(halves.at(packed_column + j, k));
    const index_t lines = packed.data != nullptr ? depth(k) : ceil_div(depth(k), 2);
    return {from, is_last ? 0 : lines, steps, tiles};
  }

  // Applies the epilogue to some rows and columns, from (row, column) of the block on.
  void finish(index_t row, index_t rows, index_t column, index_t columns) const {
    if (epilogue.is_identity()) return;
    Epilogue local = epilogue;
    if (local.addend != nullptr)
      local.addend += row * local.addend_row + column * local.addend_column;
    kernels.finish(rows, columns, c + row * c_row + column, c_row, local);
  }

  // Computes a tile of c: some rows, from `column` on. run(sums, row stride, adds) does the
  // arithmetic, and also the epilogue if it `finishes`. A tile that is narrower than its vectors is
  // first computed outside c.
  template <class Run>
  void place_tile(index_t vectors, index_t p, index_t k, index_t column, index_t columns,
                  const Run& run) const {
    place_rows(vectors, first(p), rows_of(p), k, column, columns, run);
  }
  template <class Run>
  void place_rows(index_t vectors, index_t row, index_t rows, index_t k, index_t column,
                  index_t columns, const Run& run, bool finishes = false) const {
    float* const to = c + row * c_row + column;
    alignas(64) float whole[Microkernels::most_floats];
    const bool fits = columns == vectors * kernels.lanes;
    float* const sums = fits ? to : whole;
    const index_t width = fits ? c_row : vectors * kernels.lanes;
    run(sums, width, fits && k > 0);
    if (!fits) kernels.narrow(rows, whole, width, columns, to, c_row, k > 0);
    if (!finishes && k + depth(k) == this->k) finish(row, rows, column, columns);
  }

  // `tile` is nullptr: the tile of this many rows and vectors.
  void multiply_pairs(PairTile tile, index_t vectors, index_t p, index_t k, const void* b_block,
                      index_t b_vector, index_t b_row, index_t column, index_t columns,
                      const NextPanels& next) const {
    const index_t rows = rows_of(p);
    if (tile == nullptr) tile = pairs->tile[rows - 1][vectors - 1];
    const float* const a_panel = scratch.a + first(p) * length(depth(k));
    place_tile(vectors, p, k, column, columns, [&](float* sums, index_t width, bool adds) {
      tile(length(depth(k)), reinterpret_cast<const Pair*>(a_panel),
           static_cast<const Pair*>(b_block), b_vector, b_row, sums, width, adds, next);
    });
  }

  // `tile` is nullptr: the tile of this many rows and vectors.
  void multiply(Tile tile, index_t vectors, index_t p, index_t k, const float* b_block,
                index_t column, index_t columns) const {
    const index_t rows = rows_of(p), row = first(p);
    if (pairs != nullptr)
      return multiply_pairs(nullptr, vectors, p, k, b_block, kernels.lanes, kernels.columns(),
                            column, columns, {b_block, 0});
    const float* const a_panel = scratch.a + row * depth(k);
    place_tile(vectors, p, k, column, columns, [&](float* sums, index_t width, bool adds) {
      if (tile == nullptr && reads_a_in_place())
        kernels.tile_in_place[rows - 1][vectors - 1](depth(k), a.floats(row, k), a.across_stride,
                                                     b_block, scratch.b_rows, sums, width, adds);
      else
        (tile != nullptr ? tile : kernels.tile[rows - 1][vectors - 1])(
            depth(k), a_panel, b_block, scratch.b_rows, sums, width, adds);
    });
  }

  // For many rows: each element of b is packed once, and every panel of a reads it.
  void run_packed() const {
    const index_t width = kernels.columns(), group = panels_at_once * width;
    set_b_rows(width);
    // at least once, also if k is 0
    for (index_t k = 0; k == 0 || k < this->k; k += gemm_depth_block) {
      for (index_t first = 0; first < columns; first += group) {
        const index_t last = smaller(columns, first + group);
        pack_b({k, first, depth(k), last - first});
        Source next{};
        if (last < columns)
          next = {k, last, depth(k), smaller(group, columns - last)};
        else if (const index_t behind = k + gemm_depth_block; behind < this->k)
          next = {behind, 0, depth(behind), smaller(group, columns)};
        const index_t tiles = ceil_div(last - first, width) * panels();
        index_t tile = 0;
        for (index_t j = first; j < last; j += width) {
          const index_t here = smaller(width, last - j), vectors = ceil_div(here, kernels.lanes);
          for (index_t p = 0; p < panels(); ++p) {
            if (j == 0 && !reads_a_in_place()) pack_a(k, p);
            multiply(nullptr, vectors, p, k, scratch.b + (j - first) * length(depth(k)), j, here);
            prefetch_b(next, tiles, tile++);
          }
        }
      }
    }
  }

  // Whether a stays in the second-level cache where it lies. If its rows are so far apart that many
  // of them share the same sets of the cache, it is packed.
  bool keeps_a_in_place() const {
    if (a.is_small() || a.depth_stride != 1) return false;
    constexpr index_t sets = 64 << 10, most = 1 << 20;  // bytes
    index_t apart = sets;                               // the greatest common divisor
    while (a.across_stride * index_t{sizeof(float)} % apart != 0) apart /= 2;
    return rows * apart <= most || reads_a_in_place();
  }

  // A bias that a tile adds to its sums: one for each column, and nothing else is left to do.
  const float* bias_of_columns() const {
    const Epilogue& e = epilogue;
    return e.alpha == 1 && e.beta == 1 && e.addend_row == 0 && e.addend_column == 1 &&
                   e.activation == Activation::none
               ? e.addend
               : nullptr;
  }

  // Whether panels of f32 need a packed a.
  bool packs_a() const { return rows > Microkernels::most_rows_of_long && !keeps_a_in_place(); }

  // The tile for few rows from column j on, which prefetches its own panels. nullptr: there is
  // none, and tiles prefetch what is multiplied next.
  const Microkernels::LongPanel* long_panel_at(index_t j) const {
    if (rows > Microkernels::most_rows_of_long || (packed_column + j) % panel_width != 0)
      return nullptr;
    const Microkernels::LongPanel& l = kernels.long_panel_tile[rows - 1];
    return l.tile != nullptr && l.vectors * kernels.lanes <= columns - j ? &l : nullptr;
  }

  // For panels of halves, which are widened on the way.
  void run_half_panels() const {
    const HalfPanelTiles::OfDtype& tiles =
        halves.dtype == DType::f16 ? half_panels->f16 : half_panels->bf16;
    const HalfPanelTile long_tile =
        rows <= HalfPanelTiles::most_rows_of_long ? tiles.long_tile[rows - 1].tile : nullptr;
    const index_t panel_vectors = panel_width / kernels.lanes,
                  wide = long_tile != nullptr ? tiles.long_tile[rows - 1].vectors : tiles.vectors;
    const EvenParts parts{rows, ceil_div(rows, tiles.rows)};
    const float* const bias = bias_of_columns();
    const auto is_wide = [&](index_t j) { return wide * kernels.lanes <= columns - j; };
    const auto columns_at = [&](index_t j) {
      return smaller((is_wide(j) ? wide : panel_vectors) * kernels.lanes, columns - j);
    };
    for_each_block(columns_at, [&](index_t k, index_t j, index_t here) {
      const index_t steps = halves.dtype == DType::f16 ? depth(k) : ceil_div(depth(k), 2);
      const PrefetchOfPanels prefetch = prefetch_behind(k, j, j + here, steps, parts.count);
      for (index_t p = 0; p < parts.count; ++p) {
        const index_t count = parts.length(p);
        const HalfPanelTile tile = !is_wide(j)            ? tiles.narrow[count - 1]
                                   : long_tile != nullptr ? long_tile
                                                          : tiles.tile[count - 1];
        place_half_tile(tile, is_wide(j) ? wide : panel_vectors, parts.begin(p), count, k, j, here,
                        bias, prefetch.of_tile(p));
      }
    });
  }
  void place_half_tile(HalfPanelTile tile, index_t vectors, index_t row, index_t rows, index_t k,
                       index_t column, index_t columns, const float* bias,
                       const NextPanels& next) const {
    const bool is_last = k + depth(k) == this->k,
               in_tile = bias != nullptr && columns == vectors * kernels.lanes;
    place_rows(
        vectors, row, rows, k, column, columns,
        [&](float* sums, index_t width, bool adds) {
          tile(depth(k), a.floats(row, k), a.across_stride, a.depth_stride,
               halves.at(packed_column + column, k), halves.panel_halves(), sums, width, adds,
               is_last && in_tile ? bias + column : nullptr, next);
        },
        in_tile);
  }

  // For panels of pairs, with an instruction that multiplies them.
  void run_pair_panels() const {
    const PairTiles::Long* few =
        rows <= Microkernels::most_rows_of_long ? &pairs->long_tile[rows - 1] : nullptr;
    for (index_t k = 0; k == 0 || k < this->k; k += gemm_depth_block)
      for (index_t j = 0; j < columns;) {
        const bool is_long = few != nullptr && few->vectors * kernels.lanes <= columns - j;
        const index_t here = is_long ? few->vectors * kernels.lanes
                                     : smaller(kernels.columns(), columns - j),
                      vectors = ceil_div(here, kernels.lanes);
        const PrefetchOfPanels prefetch =
            prefetch_behind(k, j, j + here, length(depth(k)), panels());
        for (index_t p = 0; p < panels(); ++p) {
          if (j == 0) pack_a(k, p);
          multiply_pairs(is_long ? few->tile : nullptr, vectors, p, k,
                         halves.at(packed_column + j, k), halves.panel_halves() / 2, panel_width, j,
                         here, prefetch.of_tile(p));
        }
        j += here;
      }
  }

  // For one panel of rows: b is read where it lies.
  void run_in_place() const {
    set_b_rows(b.depth_stride);
    const bool has_long = rows <= Microkernels::most_rows_of_long;
    for (index_t k = 0; k == 0 || k < this->k; k += gemm_depth_block) {
      if (has_long || !reads_a_in_place()) pack_a(k, 0);
      for (index_t j = 0; j < columns;) {
        index_t vectors = smaller(kernels.vectors, ceil_div(columns - j, kernels.lanes));
        Tile tile = has_long ? kernels.tile[rows - 1][vectors - 1] : nullptr;
        if (has_long) {
          const Microkernels::Long& wide = kernels.long_tile[rows - 1];
          if (wide.vectors * kernels.lanes <= columns - j) vectors = wide.vectors, tile = wide.tile;
        }
        const index_t here = smaller(vectors * kernels.lanes, columns - j);
        multiply(tile, vectors, 0, k, b.floats(j, k), j, here);
        j += here;
      }
    }
  }

  // For few rows and dense columns of b: the columns are read where they lie.
  void run_along_columns() const {
    kernels.row_tile[rows - 1](k, gemm_depth_block, a.floats(0, 0), a.across_stride, a.depth_stride,
                               b.floats(0, 0), b.across_stride, columns, c, c_row);
    finish(0, rows, 0, columns);
  }
  void run_along_small_columns() const {
    const auto tile = (b.dtype == DType::f16 ? small_rows->f16 : small_rows->bf16)[rows - 1];
    const index_t most = piece_floats / rows / gemm_depth_block * gemm_depth_block;
    for (index_t at = 0; at == 0 || at < k; at += most) {
      const index_t length = smaller(most, k - at);
      for (index_t r = 0; r < rows; ++r) widen_row(a, r, at, length, scratch.piece + r * length);
      tile(length, gemm_depth_block, scratch.piece, length, b.at(0, at), b.across_stride, columns,
           c, c_row, at > 0);
    }
  }
};

}  // namespace taper::optimized
