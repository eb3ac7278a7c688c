#include "taper/kernels/optimized/gemm.h"

#include "taper/kernels/optimized/gemm_block.h"

namespace taper::optimized {
namespace {

// A packed block of a, (row_block, gemm_depth_block), stays in the second-level cache while it is
// multiplied with the columns of b.
constexpr index_t most_rows = 512;

// A block of small floats is summed as f32 in scratch. It also stays in the second-level cache.
constexpr index_t most_small_rows = 256, most_small_columns = 512;
static_assert(most_small_columns <= piece_floats);

// A task with fewer multiply-adds than this is not worth handing to another thread.
constexpr index_t least_work = 1 << 18;
// The cost of starting a small product, in multiply-adds.
constexpr index_t product_overhead = 1 << 11;

// Rounds finished sums to small floats and writes them to c, from (row, column) of product i on.
// `addend` has room for the floats of a row.
void round_block(const GemmBlock& sums, const Gemm& g, index_t i, index_t row, index_t column,
                 float* addend) {
  const index_t bytes = size_bytes(g.dtype);
  const auto widen = [&](index_t n, index_t at, float* to) {
    g.small->widen(g.dtype, n, static_cast<const std::byte*>(g.addend) + at * bytes, to);
  };
  Epilogue epilogue;
  epilogue.alpha = g.alpha, epilogue.beta = g.beta;
  for (index_t r = 0; r < sums.rows; ++r) {
    float* const y = sums.c + r * sums.c_row;
    if (g.addend != nullptr) {
      const index_t at = i * g.addend_batch + (row + r) * g.addend_row + column * g.addend_column;
      epilogue.addend = addend, epilogue.addend_column = g.addend_column == 0 ? 0 : 1;
      if (g.addend_column <= 1)
        widen(g.addend_column == 0 ? 1 : sums.columns, at, addend);
      else
        for (index_t j = 0; j < sums.columns; ++j) widen(1, at + j * g.addend_column, addend + j);
    }
    if (!epilogue.is_identity()) sums.kernels.finish(1, sums.columns, y, sums.c_row, epilogue);
    g.small->narrow(
        g.dtype, sums.columns, y,
        static_cast<std::byte*>(g.c) + (i * g.c_batch + (row + r) * g.c_row + column) * bytes);
  }
}

// Cuts the scratch of a slot for blocks of this size. Returns its bytes; if `at` is not nullptr,
// `s` says where the parts lie.
index_t cut_scratch(const Microkernels& kernels, const Gemm& g, index_t rows, index_t columns,
                    std::byte* at, GemmScratch& s) {
  const index_t depth = smaller(g.k, gemm_depth_block);
  index_t bytes = 0;
  const auto take = [&](index_t size) {
    std::byte* part = at == nullptr ? nullptr : at + bytes;
    bytes += round_up(size, scratch_alignment);
    return reinterpret_cast<float*>(part);
  };
  const index_t floats = sizeof(float);
  s.a = take(rows * depth * floats);
  const bool b_is_dense = g.b_layout == Layout::dense, is_small = g.dtype != DType::f32,
             has_small = is_small || g.b_dtype != DType::f32;
  const index_t b_columns = b_is_dense ? GemmBlock::panels_at_once * kernels.columns() : 0;
  s.b = take(b_columns * depth * floats);
  s.b_rows = reinterpret_cast<index_t*>(
      take(b_is_dense ? (depth + Microkernels::rows_ahead) * index_t{sizeof(index_t)} : 0));
  s.sums = take(is_small ? rows * columns * floats : 0);
  s.piece = take(has_small ? piece_floats * floats : 0);
  return bytes;
}

// Computes one of the blocks that the products are cut into. Each product has `down` x `across`
// blocks. `panels_only`: b is in panels of f32.
template <bool panels_only>
void run_block(const Microkernels& kernels, const GemmPlan& plan, const Gemm& g, index_t down,
               index_t across, index_t number, const GemmScratch& s) {
  const index_t i = number / (down * across), place = number - i * down * across;
  const index_t row = place / across * plan.row_block, column = place % across * plan.column_block;
  Operand a{g.a, g.a_row, g.a_column, g.dtype, g.small},
      b{g.b, g.b_column, g.b_row, g.b_dtype, g.small};
  a.data = a.at_offset(i * g.a_batch + row * g.a_row);
  PackedMatrix packed;
  PackedHalves halves;
  if (is_in_halves(g.b_layout))
    halves = {static_cast<const uint16_t*>(g.b), g.b_dtype, g.k};
  else if (g.b_layout != Layout::dense)
    packed = {static_cast<const float*>(g.b), g.k};
  else
    b.data = b.at_offset(i * g.b_batch + column * g.b_column);
  GemmBlock block{kernels,
                  g.small_rows,
                  g.half_panels,
                  g.pairs,
                  g.k,
                  a,
                  b,
                  packed,
                  halves,
                  column,
                  s.sums,
                  plan.column_block,
                  smaller(plan.row_block, g.m - row),
                  smaller(plan.column_block, g.n - column),
                  {},
                  s};
  if constexpr (!panels_only)
    if (g.dtype != DType::f32) {
      block.run();
      return round_block(block, g, i, row, column, s.piece);
    }
  block.c = static_cast<float*>(g.c) + i * g.c_batch + row * g.c_row + column;
  block.c_row = g.c_row;
  Epilogue& e = block.epilogue;
  e.alpha = g.alpha, e.beta = g.beta;
  e.addend_row = g.addend_row, e.addend_column = g.addend_column;
  if (g.addend != nullptr)
    e.addend = static_cast<const float*>(g.addend) + i * g.addend_batch + row * g.addend_row +
               column * g.addend_column;
  if constexpr (panels_only)
    block.run_panels();
  else
    block.run();
}

template <bool panels_only>
void run_blocks(const Microkernels& kernels, const GemmPlan& plan, const Gemm& g, void* scratch,
                const Threads* threads) {
  const index_t down = ceil_div(g.m, plan.row_block), across = ceil_div(g.n, plan.column_block),
                blocks = g.batch * down * across;
  const index_t work = plan.row_block * smaller(plan.column_block, g.n) * g.k + product_overhead;
  const index_t at_once = larger(1, least_work / work);
  parallel_for_threads(threads, ceil_div(blocks, at_once), [&](index_t task, index_t slot) {
    GemmScratch s;
    cut_scratch(kernels, g, plan.row_block, plan.column_block,
                static_cast<std::byte*>(scratch) + slot * plan.bytes_per_slot, s);
    for (index_t i = task * at_once; i < smaller(blocks, (task + 1) * at_once); ++i)
      run_block<panels_only>(kernels, plan, g, down, across, i, s);
  });
}

}  // namespace

GemmPlan plan_gemm(const Microkernels& kernels, const Gemm& g, int thread_count) {
  const bool is_small = g.dtype != DType::f32;
  const index_t width = g.b_layout == Layout::dense ? kernels.columns()
                        : is_in_halves(g.b_layout)  ? round_up(kernels.panel_columns(), panel_width)
                                                    : kernels.panel_columns(),
                rows = larger(g.m, 1), columns = round_up(larger(g.n, 1), width);
  const index_t most_rows_here = is_small ? most_small_rows : most_rows,
                most_columns_here = is_small ? smaller(columns, most_small_columns) : columns;
  GemmPlan plan;
  plan.row_block = ceil_div(rows, ceil_div(rows, most_rows_here));
  plan.column_block = most_columns_here;

  // Two tasks for each thread, so that a slow one does not keep the others waiting. Cutting rows
  // packs b again, and cutting columns packs a again. So the longer side is cut.
  const index_t wish = thread_count > 1 ? 2 * thread_count : 1;
  const auto tasks = [&] {
    return g.batch * ceil_div(g.m, plan.row_block) * ceil_div(g.n, plan.column_block);
  };
  while (tasks() < wish && plan.row_block * plan.column_block * g.k >= 2 * least_work) {
    if (plan.column_block > plan.row_block && plan.column_block > width)
      plan.column_block = round_up(plan.column_block / 2, width);
    else if (plan.row_block > kernels.rows)
      plan.row_block = ceil_div(plan.row_block, 2);
    else
      break;
  }

  // The scratch must not shrink for a larger shape, so it is that of the largest blocks.
  GemmScratch scratch;
  plan.slots = thread_count;
  plan.bytes_per_slot =
      cut_scratch(kernels, g, smaller(rows, most_rows_here), most_columns_here, nullptr, scratch);
  return plan;
}

GemmPlan plan_gemm(const Microkernels& kernels, index_t batch, index_t m, index_t n, index_t k,
                   int thread_count) {
  Gemm g;
  g.batch = batch, g.m = m, g.n = n, g.k = k;
  return plan_gemm(kernels, g, thread_count);
}

void run_gemm(const Microkernels& kernels, const GemmPlan& plan, const Gemm& g, void* scratch,
              const Threads* threads) {
  run_blocks<false>(kernels, plan, g, scratch, threads);
}
void run_panel_gemm(const Microkernels& kernels, const GemmPlan& plan, const Gemm& g, void* scratch,
                    const Threads* threads) {
  run_blocks<true>(kernels, plan, g, scratch, threads);
}

}  // namespace taper::optimized
