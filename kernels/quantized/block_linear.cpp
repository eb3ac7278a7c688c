// The plain kernels, which every machine can run.
#include "taper/kernels/quantized/block_linear.h"

#include <cmath>

#include "taper/kernels/portable/product.h"
#include "taper/kernels/quantized/block_groups.h"
#include "taper/kernels/quantized/packings.h"
#include "taper/kernels/quantized/rounded_rows.h"
#include "taper/kernels/shapes/blocks.h"

namespace taper::quantized {
namespace {

constexpr index_t strip = 16;  // rows of weights that a task de-quantizes

struct Strips {
  index_t bytes_of_slot;
};

Error prepare(Context& context, Strips& plan, View<const float> input, View<const float> weight,
              Maybe<View<const float>>, View<float>) {
  const BlockLinear g(input, weight);
  if (g.columns == 0) return Error::ok;  // without elements, the depth may be anything
  const int slots = context.threads == nullptr ? 1 : context.threads->count;
  plan.bytes_of_slot = (strip * g.depth * index_t{sizeof(float)} + 63) / 64 * 64;
  context.need_scratch(static_cast<size_t>(plan.bytes_of_slot) * static_cast<size_t>(slots));
  return Error::ok;
}

Error run(Context& context, const Strips& plan, View<const float> input, View<const float> weight,
          Maybe<View<const float>> bias, View<float> out) {
  const BlockLinear g(input, weight);
  const index_t strips = (g.columns + strip - 1) / strip;
  parallel_for_threads(context.threads, strips, [&](index_t s, int slot) {
    const index_t first = s * strip, count = g.columns - first < strip ? g.columns - first : strip;
    const float* rows = weight.data() + first * g.depth;
    if (weight.layout() != Layout::dense) {
      auto* decoded = reinterpret_cast<float*>(static_cast<std::byte*>(context.scratch) +
                                               slot * plan.bytes_of_slot);
      for (index_t i = 0; i < count; ++i) blocks_of(weight).row(first + i, decoded + i * g.depth);
      rows = decoded;
    }
    portable::Product<float> p{g.rows,
                               count,
                               g.depth,
                               {input.data(), g.depth, 1},
                               {rows, 1, g.depth},
                               {},
                               {out.data() + first, g.columns, 1}};
    if (bias) {
      const index_t step = bias->numel() == 1 ? 0 : 1;
      p.addend = {bias->data() + first * step, 0, step};
    }
    portable::multiply(Context(), p);
  });
  return Error::ok;
}

// ---- with rounded rows

struct Nothing {};

Error prepare_q8(Context& context, Nothing&, View<const float> input, View<const float> weight,
                 Maybe<View<const float>>, View<float>) {
  const BlockLinear g(input, weight);
  context.need_scratch(bytes_of_rounded_rows(g.rows, g.depth));
  return Error::ok;
}

// Sums of `unit` times the integers of a row, as in block_tiles.h.
float add_unit(const Unit& unit, BlockTraits traits, const int8_t* x, const RoundedUnit& of_x,
               float y) {
  const auto add = [&](int first, int end, int half, int part) {
    int32_t sum = 0;
    for (int k = first; k < end; ++k) sum += unit.value[k] * x[k];
    y += unit.scale[half] * of_x.scale * static_cast<float>(sum);
    if (traits.has_offset) y += unit.offset[half] * of_x.weighted[part];
  };
  if (!traits.has_halves) return add(0, 32, 0, 2), y;
  return add(0, 16, 0, 0), add(16, 32, 1, 1), y;
}
// The same for a weight without integers, whose products are summed as f32.
float add_floats(const float* w, const int8_t* x, const RoundedUnit& of_x, float y) {
  for (int k = 0; k < unit_elements; ++k) y += w[k] * (of_x.scale * static_cast<float>(x[k]));
  return y;
}

void decode_floats(View<const float> weight, index_t row, index_t u, float* to) {
  FloatUnit unit;
  blocks_of(weight).decode(row, u, unit);
  for (int k = 0; k < unit_elements; ++k) to[k] = unit.scale * unit.value[k];
}

Error run_q8(Context& context, const Nothing&, View<const float> input, View<const float> weight,
             Maybe<View<const float>> bias, View<float> out) {
  return run_plain_q8(context, input, weight, bias, out);
}

}  // namespace

Error run_plain_q8(Context& context, View<const float> input, View<const float> weight,
                   Maybe<View<const float>> bias, View<float> out) {
  const BlockLinear g(input, weight);
  const RoundedRows x = cut_rounded_rows(context.scratch, g.rows, g.depth);
  const index_t units = x.units_of_row();
  parallel_for(context.threads, g.rows, [&](index_t r) {
    for (index_t u = 0; u < units; ++u)
      round_unit(input.data() + r * g.depth + u * unit_elements,
                 x.values + r * g.depth + u * unit_elements, x.units[r * units + u]);
  });
  const bool is_dense = weight.layout() == Layout::dense,
             has_integers = holds_integers(weight.layout());
  const BlockTraits traits = has_integers ? traits_of(weight.layout()) : BlockTraits();
  parallel_for(context.threads, g.columns, [&](index_t j) {
    constexpr index_t most_rows = 64;
    float y[most_rows];
    Unit unit;
    float floats[unit_elements];
    for (index_t first = 0; first < g.rows; first += most_rows) {
      const index_t rows = g.rows - first < most_rows ? g.rows - first : most_rows;
      for (index_t r = 0; r < rows; ++r) y[r] = 0;
      for (index_t u = 0; u < units; ++u) {
        const float* w = floats;
        if (is_dense)
          w = weight.data() + j * g.depth + u * unit_elements;
        else if (has_integers)
          blocks_of(weight).decode(j, u, unit);
        else
          decode_floats(weight, j, u, floats);
        for (index_t r = 0; r < rows; ++r)
          y[r] = has_integers
                     ? add_unit(unit, traits, x.value(first + r, u), x.unit(first + r, u), y[r])
                     : add_floats(w, x.value(first + r, u), x.unit(first + r, u), y[r]);
      }
      for (index_t r = 0; r < rows; ++r)
        out.data()[(first + r) * g.columns + j] = bias ? y[r] + bias_of(bias, j) : y[r];
    }
  });
  return Error::ok;
}

TAPER_RECORD(taper_block_linear, taper_block_linear_f32, {}, (block_packings<1, false>), prepare,
             run)
TAPER_RECORD(taper_block_linear_q8, taper_block_linear_q8_f32, {}, (block_packings<1, false>),
             prepare_q8, run_q8)
TAPER_RECORD(taper_grouped_block_linear, taper_grouped_block_linear_f32, {},
             (block_packings<1, false>), prepare_groups<Strips, prepare>, run_groups<Strips, run>)
TAPER_RECORD(taper_grouped_block_linear_q8, taper_grouped_block_linear_q8_f32, {},
             (block_packings<1, false>), prepare_groups<Nothing, prepare_q8>,
             run_groups<Nothing, run_q8>)

}  // namespace taper::quantized
