#include "taper/kernels/optimized/gemm.h"

#include <cstring>

#include "taper/kernels/optimized/tasks.h"

namespace taper::optimized {
namespace {

// A packed block of a, (row_block, gemm_depth_block), stays in the second-level cache while the
// columns of b go by. b is packed some panels of (gemm_depth_block, columns of a tile) at a time, a
// few rows across all of them, so that memory is read in long runs.
constexpr index_t most_rows = 512, panels_at_once = 4, rows_at_once = 16;

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

// c[+]= a b for one tile of c that may be narrower than its vectors
void narrow_tile(const Microkernels& kernels, Tile tile, index_t rows, index_t vectors,
                 index_t columns, index_t depth, const float* a, const float* b,
                 const index_t* b_rows, float* c, index_t c_row, bool add) {
  alignas(64) float
      whole[Microkernels::most_rows * Microkernels::most_vectors * Microkernels::most_lanes];
  const index_t width = vectors * kernels.lanes;
  tile(depth, a, b, b_rows, whole, width, false);
  for (index_t r = 0; r < rows; ++r)
    for (index_t j = 0; j < columns; ++j)
      c[r * c_row + j] = add ? c[r * c_row + j] + whole[r * width + j] : whole[r * width + j];
}

// Packs `columns` columns of b as panels.
void pack_b(const Microkernels& kernels, const Gemm& g, const float* b, index_t columns,
            index_t depth, float* to) {
  const index_t width = kernels.columns();
  if (columns % width != 0)
    std::memset(to + columns / width * width * depth, 0,
                static_cast<size_t>(width * depth) * sizeof(float));
  for (index_t k = 0; k < depth; k += rows_at_once)
    for (index_t j = 0; j < columns; j += width)
      kernels.pack(b + k * g.b_row + j * g.b_column, g.b_column, g.b_row,
                   smaller(width, columns - j), smaller(rows_at_once, depth - k),
                   to + j * depth + k * width, width);
}

// The part of c that one task computes.
struct Block {
  index_t row, rows, column, columns;
};

void run_block(const Microkernels& kernels, const Gemm& g, const Block& block, const float* a,
               const float* b, float* c, const Epilogue& epilogue, const Scratch& scratch) {
  const index_t panels = ceil_div(block.rows, kernels.rows), width = kernels.columns();
  for (index_t k = 0; k == 0 || k < g.k; k += gemm_depth_block) {  // once for an empty sum, too
    const index_t depth = smaller(gemm_depth_block, g.k - k);
    const bool last = k + depth == g.k;
    for (index_t p = 0; p < panels; ++p) {
      const index_t first = part_begin(block.rows, panels, p),
                    rows = part_begin(block.rows, panels, p + 1) - first;
      kernels.pack(a + (block.row + first) * g.a_row + k * g.a_column, g.a_row, g.a_column, rows,
                   depth, scratch.a + first * depth, rows);
    }

    for (index_t j = 0; j < block.columns; j += width) {
      const index_t column = block.column + j, columns = smaller(width, block.columns - j),
                    vectors = ceil_div(columns, kernels.lanes);
      const index_t in_group = j / width % panels_at_once;
      if (in_group == 0)
        pack_b(kernels, g, b + k * g.b_row + column * g.b_column,
               smaller(panels_at_once * width, block.columns - j), depth, scratch.b);
      const float* here = scratch.b + in_group * width * depth;

      for (index_t p = 0; p < panels; ++p) {
        const index_t first = part_begin(block.rows, panels, p),
                      rows = part_begin(block.rows, panels, p + 1) - first;
        const index_t row = block.row + first;
        const Tile tile = kernels.tile[rows - 1][vectors - 1];
        float* to = c + row * g.c_row + column;
        if (columns == vectors * kernels.lanes)
          tile(depth, scratch.a + first * depth, here, scratch.b_rows, to, g.c_row, k > 0);
        else
          narrow_tile(kernels, tile, rows, vectors, columns, depth, scratch.a + first * depth, here,
                      scratch.b_rows, to, g.c_row, k > 0);
        if (!last || epilogue.is_identity()) continue;
        Epilogue local = epilogue;
        if (local.addend != nullptr)
          local.addend += row * local.addend_row + column * local.addend_column;
        kernels.finish(rows, columns, to, g.c_row, local);
      }
    }
  }
}

}  // namespace

GemmPlan plan_gemm(const Microkernels& kernels, index_t batch, index_t m, index_t n, index_t k,
                   int thread_count) {
  GemmPlan plan;
  plan.row_block = ceil_div(larger(m, 1), ceil_div(larger(m, 1), most_rows));
  plan.column_block = round_up(larger(n, 1), kernels.columns());

  // Several tasks a thread, so that a slow one does not keep the others waiting. Cutting rows packs
  // b again, cutting columns packs a again: cut the longer side.
  const index_t wish = thread_count > 1 ? 4 * thread_count : 1;
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
        for (index_t k = 0; k < depth + Microkernels::rows_ahead; ++k)
          s.b_rows[k] = k * kernels.columns();

        const index_t i = task / (row_blocks * column_blocks);
        const index_t row = task / column_blocks % row_blocks * plan.row_block,
                      column = task % column_blocks * plan.column_block;
        const Block block{row, smaller(plan.row_block, g.m - row), column,
                          smaller(plan.column_block, g.n - column)};
        Epilogue epilogue = g.epilogue;
        if (epilogue.addend != nullptr) epilogue.addend += i * g.addend_batch;
        run_block(kernels, g, block, g.a + i * g.a_batch, g.b + i * g.b_batch, g.c + i * g.c_batch,
                  epilogue, s);
      });
}

}  // namespace taper::optimized
