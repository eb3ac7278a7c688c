#include "taper/kernels/optimized/gemm.h"

#include <cstring>

#include "taper/kernels/optimized/tasks.h"

namespace taper::optimized {
namespace {

// A packed block of a, (row_block, gemm_depth_block), stays in the second-level cache while the
// columns of b go by. b is packed some panels of (gemm_depth_block, columns of a tile) at a time,
// so that memory is read in long runs; while they are multiplied, the next ones are asked for.
constexpr index_t most_rows = 512, panels_at_once = 8;

// Up to so many panels of columns, a is not packed.
constexpr index_t few_panels = 4;

// Below this many multiply-adds a task is not worth handing to another thread.
constexpr index_t least_work = 1 << 18;

struct Scratch {
  float* a;         // panels of (depth, rows of a tile)
  float* b;         // panels of (depth, columns of a tile)
  index_t* b_rows;  // where a row of a panel of b begins
};

index_t bytes_of_a(index_t rows, index_t depth) {
  return round_up(rows * depth * index_t{sizeof(float)}, scratch_alignment);
}
index_t bytes_of_b(const Microkernels& kernels, index_t depth) {
  return round_up(kernels.columns() * depth * index_t{sizeof(float)}, scratch_alignment);
}

// A block of b, (depth, columns), from element (row, column) of it on.
struct Source {
  const float* from;
  index_t depth, columns;
};

// Packs a block of b as panels: a few rows across all of them where rows are contiguous, whole
// columns where these are.
void pack_b(const Microkernels& kernels, const Gemm& g, const Source& b, float* to) {
  const index_t width = kernels.columns(), rows = g.b_row == 1 ? b.depth : 16;
  if (b.columns % width != 0)
    std::memset(to + b.columns / width * width * b.depth, 0,
                static_cast<size_t>(width * b.depth) * sizeof(float));
  for (index_t k = 0; k < b.depth; k += rows)
    for (index_t j = 0; j < b.columns; j += width)
      kernels.pack(b.from + k * g.b_row + j * g.b_column, g.b_column, g.b_row,
                   smaller(width, b.columns - j), smaller(rows, b.depth - k),
                   to + j * b.depth + k * width, width);
}

// Asks for the i-th of `parts` parts of a block of b.
void prefetch_b(const Gemm& g, const Source& b, index_t parts, index_t i) {
  constexpr index_t line = 16;
  const bool by_rows = g.b_column == 1;
  if (!by_rows && g.b_row != 1) return;
  const index_t runs = by_rows ? b.depth : b.columns, length = by_rows ? b.columns : b.depth,
                stride = by_rows ? g.b_row : g.b_column;
  for (index_t run = part_begin(runs, parts, i); run < part_begin(runs, parts, i + 1); ++run)
    for (index_t at = 0; at < length; at += line)
      __builtin_prefetch(b.from + run * stride + at, 0, 2);
}

// The part of c that one task computes, and its operands.
struct Block {
  const Microkernels& kernels;
  const Gemm& g;
  const float *a, *b;
  float* c;
  index_t row, rows, column, columns;
  Epilogue epilogue;
  Scratch scratch;

  index_t panels() const { return ceil_div(rows, kernels.rows); }
  index_t first(index_t panel) const { return part_begin(rows, panels(), panel); }
  index_t rows_of(index_t panel) const { return first(panel + 1) - first(panel); }
  index_t depth(index_t k) const { return smaller(gemm_depth_block, g.k - k); }
  Source source(index_t k, index_t column, index_t columns) const {
    return {b + k * g.b_row + (this->column + column) * g.b_column, depth(k), columns};
  }

  // Rows of the k-th place of a block of b lie at b_rows[k].
  void set_b_rows(index_t stride) {
    for (index_t k = 0; k < smaller(gemm_depth_block, g.k) + Microkernels::rows_ahead; ++k)
      scratch.b_rows[k] = k * stride;
  }

  // Packs a panel of a, and asks for the next one, which is packed after a tile.
  void pack_a(index_t k, index_t p) const {
    kernels.pack(a + (row + first(p)) * g.a_row + k * g.a_column, g.a_row, g.a_column, rows_of(p),
                 depth(k), scratch.a + first(p) * depth(k), rows_of(p));
    if (g.a_column != 1 || p + 1 == panels()) return;
    for (index_t r = first(p + 1); r < first(p + 1) + rows_of(p + 1); ++r)
      for (index_t at = 0; at < depth(k); at += 16)
        __builtin_prefetch(a + (row + r) * g.a_row + k + at, 0, 2);
  }

  // So few columns that packing a would take longer than reading it where it lies.
  bool reads_a_in_place() const {
    return g.a_column == 1 && columns <= few_panels * kernels.columns();
  }

  // A tile's share of c: of panel p, from `column` on. `tile` is nullptr: that of rows and vectors.
  // A tile of c that is narrower than its vectors is computed beside it.
  void multiply(Tile tile, index_t vectors, index_t p, index_t k, const float* b_block,
                index_t column, index_t columns) const {
    const index_t rows = rows_of(p), row = this->row + first(p), at = this->column + column;
    float* const to = c + row * g.c_row + at;
    alignas(64) float
        whole[Microkernels::most_rows * Microkernels::most_vectors * Microkernels::most_lanes];
    const bool fits = columns == vectors * kernels.lanes;
    float* const sums = fits ? to : whole;
    const index_t width = fits ? g.c_row : vectors * kernels.lanes;
    const bool adds = fits && k > 0;
    if (tile == nullptr && reads_a_in_place())
      kernels.tile_in_place[rows - 1][vectors - 1](depth(k), a + row * g.a_row + k, g.a_row,
                                                   b_block, scratch.b_rows, sums, width, adds);
    else
      (tile != nullptr ? tile : kernels.tile[rows - 1][vectors - 1])(
          depth(k), scratch.a + first(p) * depth(k), b_block, scratch.b_rows, sums, width, adds);
    if (!fits) kernels.narrow(rows, whole, width, columns, to, g.c_row, k > 0);
    if (k + depth(k) < g.k || epilogue.is_identity()) return;
    Epilogue local = epilogue;
    if (local.addend != nullptr) local.addend += row * local.addend_row + at * local.addend_column;
    kernels.finish(rows, columns, to, g.c_row, local);
  }

  // Many rows: each element of b is packed once and read by every panel of a.
  void run_packed() {
    const index_t width = kernels.columns(), group = panels_at_once * width;
    set_b_rows(width);
    for (index_t k = 0; k == 0 || k < g.k; k += gemm_depth_block) {  // once for an empty sum, too
      for (index_t first = 0; first < columns; first += group) {
        const index_t last = smaller(columns, first + group);
        pack_b(kernels, g, source(k, first, last - first), scratch.b);
        Source next{nullptr, 0, 0};
        if (last < columns)
          next = source(k, last, smaller(group, columns - last));
        else if (k + gemm_depth_block < g.k)
          next = source(k + gemm_depth_block, 0, smaller(group, columns));
        const index_t tiles = ceil_div(last - first, width) * panels();
        index_t tile = 0;
        for (index_t j = first; j < last; j += width) {
          const index_t here = smaller(width, last - j), vectors = ceil_div(here, kernels.lanes);
          for (index_t p = 0; p < panels(); ++p) {
            if (j == 0 && !reads_a_in_place()) pack_a(k, p);
            multiply(nullptr, vectors, p, k, scratch.b + (j - first) * depth(k), j, here);
            prefetch_b(g, next, tiles, tile++);
          }
        }
      }
    }
  }

  // One panel of rows: b is read where it lies.
  void run_in_place() {
    const index_t rows = this->rows;
    set_b_rows(g.b_row);
    const bool has_long = rows <= Microkernels::most_rows_of_long;
    for (index_t k = 0; k == 0 || k < g.k; k += gemm_depth_block) {
      if (has_long || !reads_a_in_place()) pack_a(k, 0);
      for (index_t j = 0; j < columns;) {
        index_t vectors = smaller(kernels.vectors, ceil_div(columns - j, kernels.lanes));
        Tile tile = has_long ? kernels.tile[rows - 1][vectors - 1] : nullptr;
        if (has_long) {
          const Microkernels::Long& wide = kernels.long_tile[rows - 1];
          if (wide.vectors * kernels.lanes <= columns - j) vectors = wide.vectors, tile = wide.tile;
        }
        const index_t here = smaller(vectors * kernels.lanes, columns - j);
        multiply(tile, vectors, 0, k, source(k, j, here).from, j, here);
        j += here;
      }
    }
  }

  // Few rows, and the columns of b lie densely: these are read where they lie.
  void run_along_columns() {
    float* to = c + row * g.c_row + column;
    kernels.row_tile[rows - 1](g.k, gemm_depth_block, a + row * g.a_row, g.a_row, g.a_column,
                               b + column * g.b_column, g.b_column, columns, to, g.c_row);
    if (epilogue.is_identity()) return;
    Epilogue local = epilogue;
    if (local.addend != nullptr)
      local.addend += row * local.addend_row + column * local.addend_column;
    kernels.finish(rows, columns, to, g.c_row, local);
  }

  void run() {
    if (g.b_row == 1 && g.b_column != 1 && rows <= Microkernels::most_rows_of_long)
      run_along_columns();
    else if (g.b_column == 1 && rows <= kernels.rows)
      run_in_place();
    else
      run_packed();
  }
};

}  // namespace

GemmPlan plan_gemm(const Microkernels& kernels, index_t batch, index_t m, index_t n, index_t k,
                   int thread_count) {
  GemmPlan plan;
  plan.row_block = ceil_div(larger(m, 1), ceil_div(larger(m, 1), most_rows));
  plan.column_block = round_up(larger(n, 1), kernels.columns());

  // Two tasks a thread, so that a slow one does not keep the others waiting. Cutting rows packs
  // b again, cutting columns packs a again: cut the longer side.
  const index_t wish = thread_count > 1 ? 2 * thread_count : 1;
  const auto tasks = [&] {
    return batch * ceil_div(m, plan.row_block) * ceil_div(n, plan.column_block);
  };
  while (tasks() < wish && plan.row_block * plan.column_block * k >= 2 * least_work) {
    if (plan.column_block > plan.row_block && plan.column_block > kernels.columns())
      plan.column_block = round_up(plan.column_block / 2, kernels.columns());
    else if (plan.row_block > kernels.rows)
      plan.row_block = ceil_div(plan.row_block, 2);
    else
      break;
  }

  // What a larger shape would not need less of.
  const index_t depth = smaller(k, gemm_depth_block);
  plan.slots = thread_count;
  plan.bytes_per_slot =
      bytes_of_a(smaller(larger(m, 1), most_rows), depth) +
      panels_at_once * bytes_of_b(kernels, depth) +
      round_up((depth + Microkernels::rows_ahead) * index_t{sizeof(index_t)}, scratch_alignment);
  return plan;
}

void run_gemm(const Microkernels& kernels, const GemmPlan& plan, const Gemm& g, void* scratch,
              const Threads* threads) {
  const index_t row_blocks = ceil_div(g.m, plan.row_block),
                column_blocks = ceil_div(g.n, plan.column_block);
  const index_t depth = smaller(g.k, gemm_depth_block);
  parallel_for_slots(
      threads, g.batch * row_blocks * column_blocks, plan.slots, [&](index_t task, index_t slot) {
        std::byte* at = static_cast<std::byte*>(scratch) + slot * plan.bytes_per_slot;
        Scratch s;
        s.a = reinterpret_cast<float*>(at), at += bytes_of_a(plan.row_block, depth);
        s.b = reinterpret_cast<float*>(at), at += panels_at_once * bytes_of_b(kernels, depth);
        s.b_rows = reinterpret_cast<index_t*>(at);

        const index_t i = task / (row_blocks * column_blocks);
        const index_t row = task / column_blocks % row_blocks * plan.row_block,
                      column = task % column_blocks * plan.column_block;
        Block block{kernels,
                    g,
                    g.a + i * g.a_batch,
                    g.b + i * g.b_batch,
                    g.c + i * g.c_batch,
                    row,
                    smaller(plan.row_block, g.m - row),
                    column,
                    smaller(plan.column_block, g.n - column),
                    g.epilogue,
                    s};
        if (block.epilogue.addend != nullptr) block.epilogue.addend += i * g.addend_batch;
        block.run();
      });
}

}  // namespace taper::optimized
