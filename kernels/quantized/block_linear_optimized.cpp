// block_linear with the matrix product of kernels/optimized.
#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/quantized/block_groups.h"
#include "taper/kernels/quantized/block_linear.h"
#include "taper/kernels/quantized/block_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"
#include "taper/kernels/quantized/packings.h"
#include "taper/kernels/quantized/table_rows.h"
#include "taper/kernels/shapes/blocks.h"

namespace taper::quantized {
namespace {

using optimized::CpuLevel;
using optimized::microkernels;

constexpr index_t strip = 4 * panel_width;  // rows of weights that a task de-quantizes

struct Plan {
  optimized::GemmPlan gemm;
  index_t decoded_bytes, bytes_of_panel, bytes_of_slot;
};

/// The tiles of a weight that is in panels, or in blocks that have panels. nullptr: there are none.
template <CpuLevel level>
const BlockTiles::OfFormat* tiles_of(Layout layout) {
  if (!is_in_block_panels(layout) && !has_panels(layout)) return nullptr;
#if TAPER_TILES_X86
  const Layout panels = is_in_block_panels(layout) ? layout : panels_of(layout);
  if constexpr (level == CpuLevel::avx512) return &block_tiles_avx512.of(panels);
  if constexpr (level == CpuLevel::avx2) return &block_tiles_avx2.of(panels);
#elif TAPER_TILES_ARM64
  return &block_tiles_neon.of(is_in_block_panels(layout) ? layout : panels_of(layout));
#endif
  return nullptr;
}

// Columns of the result, whose weights are `rows`: in panels, or one behind the other.
optimized::Gemm product(const BlockLinear& g, bool in_panels) {
  optimized::Gemm p;
  p.m = g.rows, p.n = strip, p.k = g.depth;
  p.a_row = g.depth, p.c_row = g.columns;
  if (in_panels)
    p.b_layout = Layout::panels_of_first;
  else
    p.b_row = 1, p.b_column = g.depth;
  return p;
}

template <CpuLevel level>
Error prepare(Context& context, Plan& plan, View<const float> input, View<const float> weight,
              Maybe<View<const float>>, View<float>) {
  const BlockLinear g(input, weight);
  if (g.columns == 0) return Error::ok;  // without elements, the depth may be anything
  const Layout layout = weight.layout();
  const bool in_panels = tiles_of<level>(layout) != nullptr;
  plan.gemm = optimized::plan_gemm(microkernels<level>(), product(g, in_panels), 1);
  plan.decoded_bytes =
      optimized::round_up(strip * g.depth * index_t{sizeof(float)}, optimized::scratch_alignment);
  plan.bytes_of_panel =
      in_panels && !is_in_block_panels(layout) ? panel_bytes(panels_of(layout), g.depth) : 0;
  plan.bytes_of_slot = optimized::round_up(
      plan.decoded_bytes + plan.bytes_of_panel + static_cast<index_t>(plan.gemm.scratch_bytes()),
      optimized::scratch_alignment);
  context.need_scratch(
      static_cast<size_t>(plan.bytes_of_slot * optimized::thread_count(context.threads)));
  return Error::ok;
}

/// Rows [first, first + count) of the weight as f32. `memory` has room for them, and behind them
/// for a panel of blocks.
template <CpuLevel level>
const float* decode(const Plan& plan, View<const float> weight, index_t first, index_t count,
                    std::byte* memory) {
  const BlockMatrix w = blocks_of(weight);
  auto* const decoded = reinterpret_cast<float*>(memory);
  const BlockTiles::OfFormat* tiles = tiles_of<level>(w.layout);
  if (tiles == nullptr) {
    for (index_t i = 0; i < count; ++i) w.row(first + i, decoded + i * w.depth);
    return decoded;
  }
  std::byte* const packed = memory + plan.decoded_bytes;
  for (index_t i = 0; i < count; i += panel_width) {
    const index_t panel = (first + i) / panel_width;
    float* const to = decoded + i * w.depth;
    if (is_in_block_panels(w.layout)) {
      tiles->unpack(w, panel, to);
    } else {
      pack_panel(w, panel, packed);
      tiles->unpack({packed, panels_of(w.layout), panel_width, w.depth}, 0, to);
    }
  }
  return decoded;
}

constexpr index_t few_rows = 4;  // the elements of their weight are never stored as f32

/// Columns [first, first + count) of few rows, at least one, with a weight in panels.
void multiply_few(const BlockTiles::OfFormat& tiles, const BlockLinear& g, View<const float> input,
                  const BlockMatrix& w, const Maybe<View<const float>>& bias, index_t first,
                  index_t count, float* out) {
  constexpr index_t width = 2 * panel_width;
  const int size = g.rows == 1 ? 0 : g.rows < 4 ? 1 : 2;
  const index_t at_once = index_t{1} << size, last_panel = (g.columns - 1) / panel_width;
  float y[4 * width];
  for (index_t column = first; column < first + count; column += width) {
    const index_t panel = column / panel_width;
    for (index_t r = 0; r < g.rows; r += at_once) {
      // the last ones may be computed twice
      const index_t row = optimized::smaller(r, g.rows - at_once);
      tiles.multiply[size](w, panel, optimized::smaller(panel + 1, last_panel),
                           input.data() + row * g.depth, g.depth, y);
      const index_t here = optimized::smaller(width, first + count - column);
      for (index_t i = 0; i < at_once; ++i)
        for (index_t j = 0; j < here; ++j) {
          const float sum = y[(j / panel_width * at_once + i) * panel_width + j % panel_width];
          out[(row + i) * g.columns + column + j] = bias ? sum + bias_of(bias, column + j) : sum;
        }
    }
  }
}

#if TAPER_TILES_X86
constexpr index_t few_table_rows = 16;  // beyond, a decoded strip is used often enough

/// The same for a weight of table levels or small floats.
template <CpuLevel level>
void multiply_table_rows(const BlockLinear& g, View<const float> input, const BlockMatrix& w,
                         const Maybe<View<const float>>& bias, index_t first, index_t count,
                         float* out) {
  constexpr index_t width = TableRows::width, most_rows = TableRows::most_rows;
  float y[most_rows * width];
  for (index_t column = first; column < first + count; column += width)
    for (index_t row = 0; row < g.rows; row += most_rows) {
      const index_t rows = optimized::smaller(most_rows, g.rows - row),
                    here = optimized::smaller(width, first + count - column);
      const auto multiply =
          level == CpuLevel::avx512 ? TableRows::multiply_avx512 : TableRows::multiply_avx2;
      multiply(w, column, input.data() + row * g.depth, g.depth, rows, y);
      for (index_t i = 0; i < rows; ++i)
        for (index_t j = 0; j < here; ++j) {
          const float sum = y[i * width + j];
          out[(row + i) * g.columns + column + j] = bias ? sum + bias_of(bias, column + j) : sum;
        }
    }
}
#endif

template <CpuLevel level>
Error run(Context& context, const Plan& plan, View<const float> input, View<const float> weight,
          Maybe<View<const float>> bias, View<float> out) {
  const BlockLinear g(input, weight);
  const bool is_dense = weight.layout() == Layout::dense;
  const BlockTiles::OfFormat* const tiles = tiles_of<level>(weight.layout());
  const bool is_empty = g.rows == 0 || g.depth == 0,
             reads_panels = is_in_block_panels(weight.layout()) && tiles != nullptr && !is_empty &&
                            g.rows <= few_rows;
  parallel_for_threads(
      context.threads, optimized::ceil_div(g.columns, strip), [&](index_t s, int slot) {
        const index_t first = s * strip, count = optimized::smaller(strip, g.columns - first);
        if (reads_panels)
          return multiply_few(*tiles, g, input, blocks_of(weight), bias, first, count, out.data());
#if TAPER_TILES_X86
        if (level != CpuLevel::portable && TableRows::takes(weight.layout()) && !is_empty &&
            g.rows <= few_table_rows)
          return multiply_table_rows<level>(g, input, blocks_of(weight), bias, first, count,
                                            out.data());
#endif
        std::byte* memory = static_cast<std::byte*>(context.scratch) + slot * plan.bytes_of_slot;
        optimized::Gemm p = product(g, tiles != nullptr);
        p.n = count;
        p.a = input.data(), p.c = out.data() + first;
        p.b = is_dense ? weight.data() + first * g.depth
                       : decode<level>(plan, weight, first, count, memory);
        if (bias) {
          p.addend_column = bias->numel() == 1 ? 0 : 1;
          p.addend = bias->data() + first * p.addend_column;
        }
        optimized::run_gemm(microkernels<level>(), plan.gemm, p,
                            memory + plan.decoded_bytes + plan.bytes_of_panel, nullptr);
      });
  return Error::ok;
}

// A group's rows are known only from the data. The plan of fewer rows needs no more scratch.
template <CpuLevel level>
Error run_group(Context& context, const Plan& plan, View<const float> input,
                View<const float> weight, Maybe<View<const float>> bias, View<float> out) {
  Plan part = plan;
  part.gemm = optimized::plan_gemm(
      microkernels<level>(),
      product(BlockLinear(input, weight), tiles_of<level>(weight.layout()) != nullptr), 1);
  return run<level>(context, part, input, weight, bias, out);
}

}  // namespace

#define TAPER_BLOCK_LINEAR(name, level, asks)                                             \
  TAPER_RECORD(taper_block_linear, taper_##name, optimized::features_of(CpuLevel::level), \
               (block_packings<1, asks>), prepare<CpuLevel::level>, run<CpuLevel::level>) \
  TAPER_RECORD(taper_grouped_block_linear, taper_grouped_##name,                          \
               optimized::features_of(CpuLevel::level), (block_packings<1, asks>),        \
               prepare_groups<Plan, prepare<CpuLevel::level>>,                            \
               run_groups<Plan, run_group<CpuLevel::level>>)
TAPER_BLOCK_LINEAR(block_linear_f32_wide, portable, TAPER_TILES_ARM64 != 0)
#if TAPER_X86_LEVELS
TAPER_BLOCK_LINEAR(block_linear_f32_avx2, avx2, true)
TAPER_BLOCK_LINEAR(block_linear_f32_avx512, avx512, true)
#endif

}  // namespace taper::quantized
