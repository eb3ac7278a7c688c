// block_linear_q8 with the tiles of an instruction set.
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/quantized/block_groups.h"
#include "taper/kernels/quantized/block_linear.h"
#include "taper/kernels/quantized/block_rows.h"
#include "taper/kernels/quantized/block_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"
#include "taper/kernels/quantized/packings.h"
#include "taper/kernels/shapes/blocks.h"

#if TAPER_TILES_X86 || TAPER_TILES_ARM64
namespace taper::quantized {
namespace {

using optimized::ceil_div;
using optimized::larger;
using optimized::round_up;
using optimized::smaller;
using optimized::thread_count;

// The most rows of input of one task.
constexpr index_t row_block = 16 * BlockTiles::most_rows;
// The least bytes of weights, times rows, for one task.
constexpr index_t least_bytes = 32768;
// The most bytes of weights of one task. They stay in a cache while its rows pass by.
constexpr index_t cached_bytes = 262144;
constexpr index_t tasks_of_thread = 8;  // so that threads end at about the same time

struct Plan {
  index_t rounded_bytes;
  index_t bytes_of_slot;  ///< for a panel that is packed in each call
};

// A panel that was not packed at load is packed into the scratch.
Error prepare(Context& context, Plan& plan, View<const float> input, View<const float> weight,
              Maybe<View<const float>>, View<float>) {
  const BlockLinear g(input, weight);
  if (g.rows == 0 || g.columns == 0) return Error::ok;  // the depth may be anything
  plan.rounded_bytes = round_up(static_cast<index_t>(bytes_of_rounded_rows(g.rows, g.depth)), 64);
  const Layout layout = weight.layout();
  plan.bytes_of_slot =
      has_panels(layout) ? round_up(panel_bytes(panels_of(layout), g.depth), 64) : 0;
  context.need_scratch(
      static_cast<size_t>(plan.rounded_bytes + plan.bytes_of_slot * thread_count(context.threads)));
  return Error::ok;
}

void round_rows(Context& context, const BlockTiles& tiles, View<const float> input,
                const RoundedRows& x, index_t rows) {
  constexpr index_t at_once = 16384 / unit_elements;  // units of one task
  const index_t units = rows * x.units_of_row();
  parallel_for(context.threads, ceil_div(units, at_once), [&](index_t task) {
    const index_t first = task * at_once, end = smaller(units, first + at_once);
    tiles.round(input.data() + first * unit_elements, end - first, x.values + first * unit_elements,
                x.units + first);
  });
}

// The products of some panels with rows [first, end).
struct PanelProduct {
  const BlockTiles& tiles;
  const RoundedRows& x;
  const Maybe<View<const float>>& bias;
  View<float> out;
  index_t columns;

  /// `count` panels of w from `panel` on. They give the columns from `column` on.
  void run(const BlockMatrix& w, index_t panel, index_t count, index_t column, index_t first,
           index_t end) const {
    for (index_t row = first; row < end; row += BlockTiles::most_rows) {
      const index_t rows = smaller(BlockTiles::most_rows, end - row);
      for (index_t p = 0; p < count; p += BlockTiles::most_panels)
        run_tile(w, panel + p, smaller(BlockTiles::most_panels, count - p),
                 column + p * panel_width, row, rows);
    }
  }
  void run_tile(const BlockMatrix& w, index_t panel, index_t count, index_t column, index_t row,
                index_t rows) const {
    alignas(64) float y[BlockTiles::most_panels * BlockTiles::most_rows * panel_width];
    const BlockTiles::OfFormat& format = tiles.of(w.layout);
    (count == 1 ? format.one_panel : format.two_panels)[rows - 1](w, panel, x, row, y);
    for (index_t p = 0; p < count; ++p)
      for (index_t r = 0; r < rows; ++r)
        store(y + (p * rows + r) * panel_width, row + r, column + p * panel_width);
  }
  void store(const float* from, index_t row, index_t column) const {
    float* to = out.data() + row * columns + column;
    const index_t count = smaller(panel_width, columns - column);
    if (!bias && count == panel_width) {
      std::memcpy(to, from, panel_width * sizeof(float));
      return;
    }
    for (index_t i = 0; i < count; ++i)
      to[i] = bias ? from[i] + bias_of(bias, column + i) : from[i];
  }
};

/// How many panels of `bytes` bytes one task takes.
index_t panels_of_task(index_t rows, index_t panels, index_t bytes, int threads) {
  const index_t least = ceil_div(least_bytes, larger(1, bytes * smaller(rows, row_block))),
                even = panels * ceil_div(rows, row_block) / (threads * tasks_of_thread),
                cached = cached_bytes / larger(1, bytes);
  const index_t many = rows > BlockTiles::most_rows ? smaller(even, cached) : 1;
  return round_up(larger(least, many), BlockTiles::most_panels);
}

#if TAPER_TILES_X86
// Blocks of integers as they lie, in strips of a few columns.
void multiply_blocks(Context& context, const BlockLinear& g, const RoundedRows& x,
                     const BlockMatrix& w, const Maybe<View<const float>>& bias, float* out) {
  constexpr index_t width = BlockRows::width, most_rows = BlockRows::most_rows;
  const BlockSize block = block_of(w.layout);
  const index_t bytes = width * (g.depth / block.elements) * block.bytes,
                at_once = ceil_div(least_bytes, larger(1, bytes * g.rows)),
                strips = ceil_div(g.columns, width);
  parallel_for(context.threads, ceil_div(strips, at_once), [&](index_t task) {
    for (index_t s = task * at_once; s < smaller(strips, (task + 1) * at_once); ++s)
      for (index_t row = 0; row < g.rows; row += most_rows) {
        const index_t first = s * width, rows = smaller(most_rows, g.rows - row);
        float y[most_rows * width];
        BlockRows::multiply_avx2(w, first, x, row, rows, y);
        for (index_t r = 0; r < rows; ++r)
          for (index_t i = 0; i < smaller(width, g.columns - first); ++i) {
            const float sum = y[r * width + i];
            out[(row + r) * g.columns + first + i] = bias ? sum + bias_of(bias, first + i) : sum;
          }
      }
  });
}
#endif

template <const BlockTiles& tiles>
Error run(Context& context, const Plan& plan, View<const float> input, View<const float> weight,
          Maybe<View<const float>> bias, View<float> out) {
  const BlockLinear g(input, weight);
  if (g.rows == 0 || g.columns == 0) return Error::ok;
  const Layout layout = weight.layout();
  const bool has_tiles = has_panels(layout) || is_in_block_panels(layout);
  if (!has_tiles && (!holds_integers(layout) || !TAPER_TILES_X86))
    return run_plain_q8(context, input, weight, bias, out);
  const RoundedRows x = cut_rounded_rows(context.scratch, g.rows, g.depth);
  round_rows(context, tiles, input, x, g.rows);

  const BlockMatrix w = blocks_of(weight);
#if TAPER_TILES_X86
  if (!has_tiles) {
    multiply_blocks(context, g, x, w, bias, out.data());
    return Error::ok;
  }
#endif
  const bool is_packed = is_in_block_panels(layout);
  const Layout panels_layout = is_packed ? layout : panels_of(layout);
  const index_t bytes = panel_bytes(panels_layout, g.depth),
                panels = ceil_div(g.columns, panel_width), blocks = ceil_div(g.rows, row_block),
                at_once = panels_of_task(g.rows, panels, bytes, thread_count(context.threads)),
                parts = ceil_div(panels, at_once);
  const PanelProduct product{tiles, x, bias, out, g.columns};
  // Tasks with the same weights follow each other.
  parallel_for_threads(context.threads, blocks * parts, [&](index_t task, int slot) {
    const index_t first = task % blocks * row_block, end = smaller(g.rows, first + row_block);
    const index_t begin = task / blocks * at_once, part_end = smaller(panels, begin + at_once);
    if (is_packed) return product.run(w, begin, part_end - begin, begin * panel_width, first, end);
    std::byte* here =
        static_cast<std::byte*>(context.scratch) + plan.rounded_bytes + slot * plan.bytes_of_slot;
    for (index_t p = begin; p < part_end; ++p) {
      pack_panel(w, p, here);
      product.run({here, panels_layout, panel_width, g.depth}, 0, 1, p * panel_width, first, end);
    }
  });
  return Error::ok;
}

}  // namespace

#define TAPER_BLOCK_LINEAR(level, needs)                                                        \
  TAPER_RECORD(taper_block_linear_q8, taper_block_linear_q8_f32_##level, needs,                 \
               (block_packings<1, true>), prepare, run<block_tiles_##level>)                    \
  TAPER_RECORD(taper_grouped_block_linear_q8, taper_grouped_block_linear_q8_f32_##level, needs, \
               (block_packings<1, true>), prepare_groups<Plan, prepare>,                        \
               run_groups<Plan, run<block_tiles_##level>>)
#if TAPER_TILES_X86
TAPER_BLOCK_LINEAR(avx2, with_implied(CpuFeature::avx2))
TAPER_BLOCK_LINEAR(avx_vnni, with_implied(CpuFeature::avx_vnni))
TAPER_BLOCK_LINEAR(avx512, with_implied(CpuFeature::avx512))
TAPER_BLOCK_LINEAR(avx512_vnni, with_implied(CpuFeature::avx512_vnni))
#else
TAPER_BLOCK_LINEAR(neon, {})
TAPER_BLOCK_LINEAR(dotprod, CpuFeature::dotprod)
TAPER_BLOCK_LINEAR(i8mm, (CpuFeatures{CpuFeature::dotprod, CpuFeature::i8mm}))
#endif

}  // namespace taper::quantized
#endif
