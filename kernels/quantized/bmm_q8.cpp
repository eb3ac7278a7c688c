// taper::bmm_q8: products of two matrices of i8 that are no constants.
#include <type_traits>

#include "taper/kernels/quantized/byte_panels.h"
#include "taper/kernels/quantized/byte_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"
#include "taper/kernels/shapes/integer.h"

#if TAPER_TILES_X86 || TAPER_TILES_ARM64
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/tasks.h"
#endif

namespace taper::quantized {
namespace {

using Bytes = View<const int8_t>;
using Matrices = View<const int8_t, Strides::any>;
using Ints = Span<const int64_t>;

// ---- the plain kernel

Error bmm(Context& context, Bytes self, Matrices mat2, double self_scale, int64_t self_zero_point,
          double mat2_scale, int64_t mat2_zero_point, double output_scale,
          int64_t output_zero_point, Ints range, View<int8_t> out) {
  const index_t rows = self.size(1), depth = self.size(2), columns = mat2.size(2);
  const Rounding rounding(output_zero_point, range[0], range[1]);
  const float scale = product_scale(self_scale, static_cast<float>(mat2_scale), output_scale);
  const auto zero = static_cast<int32_t>(self_zero_point),
             zero2 = static_cast<int32_t>(mat2_zero_point);
  if (out.numel() == 0) return Error::ok;
  parallel_for(context.threads, self.size(0) * rows, [&](index_t row) {
    const int8_t* a = self.data() + row * depth;
    const int8_t* matrix = mat2.data() + row / rows * mat2.stride(0);
    constexpr index_t block = 64;
    for (index_t begin = 0; begin < columns; begin += block) {
      const index_t count = columns - begin < block ? columns - begin : block;
      int32_t sums[block] = {};
      for (index_t k = 0; k < depth; ++k) {
        const int8_t* b = matrix + k * mat2.stride(1) + begin * mat2.stride(2);
        const auto add = [&, left = a[k] - zero](auto step) {
          for (index_t c = 0; c < count; ++c)
            sums[c] = add_product(sums[c], left, b[c * step] - zero2);
        };
        if (mat2.stride(2) == 1)
          add(std::integral_constant<index_t, 1>());
        else
          add(mat2.stride(2));
      }
      for (index_t c = 0; c < count; ++c)
        out.data()[row * columns + begin + c] = rounding(static_cast<float>(sums[c]) * scale);
    }
  });
  return Error::ok;
}

#if TAPER_TILES_X86 || TAPER_TILES_ARM64
// ---- with the tiles of an instruction set

using optimized::ceil_div;
using optimized::larger;
using optimized::round_up;
using optimized::smaller;
using optimized::thread_count;

// A task brings some columns of a matrix into panels, and multiplies all rows with them. The zero
// point of mat2 is one or two taps more: the rows meet a panel that holds it in every place.
struct Plan {
  static constexpr index_t chunk = 60;  // rows

  index_t rows, depth, columns, taps, panels;  // panels: of a task
  index_t panel_bytes, pointer_bytes, slot_bytes;

  index_t vectors() const { return BytePanels::vectors_of(depth); }
  index_t groups() const { return ceil_div(BytePanels::panels_of(columns), panels); }
};

/// The weights that stand for a zero point: -zero_point does not always fit into one.
struct ZeroWeights {
  index_t count = 0;
  int8_t each = 0;

  explicit ZeroWeights(int64_t zero_point) {
    if (zero_point == 0) return;
    count = zero_point == -128 ? 2 : 1;
    each = static_cast<int8_t>(zero_point == -128 ? 64 : -zero_point);
  }
};

/// Writes columns [first, first + count) of a matrix as a panel, and their sums.
void pack(const Plan& p, const Matrices& b, const int8_t* matrix, index_t first, index_t count,
          const ZeroWeights& zeros, int8_t* panel, int32_t* sums) {
  for (index_t k = 0; k < p.vectors() * BytePanels::vector; ++k) {
    int8_t* to = panel + k / BytePanels::vector * BytePanels::vector_bytes + k % BytePanels::vector;
    const int8_t* from = matrix + k * b.stride(1) + first * b.stride(2);
    const index_t inside = k < p.depth ? count : 0;
    for (index_t r = 0; r < inside; ++r) {
      const int8_t w = from[r * b.stride(2)];
      to[r * BytePanels::vector] = w, sums[r] += w;
    }
    for (index_t r = inside; r < BytePanels::rows; ++r) to[r * BytePanels::vector] = 0;
    for (index_t t = 1; t <= zeros.count; ++t) {
      int8_t* const tap = to + t * p.vectors() * BytePanels::vector_bytes;
      for (index_t r = 0; r < BytePanels::rows; ++r)
        tap[r * BytePanels::vector] = k < p.depth ? zeros.each : int8_t{0};
    }
  }
  const auto of_zeros = static_cast<int32_t>(zeros.count * zeros.each);
  for (index_t r = 0; r < count; ++r)
    sums[r] = add_product(sums[r], of_zeros, static_cast<int32_t>(p.depth));
}

template <const ByteTiles& tiles>
Error prepare_tiled(Context& context, Plan& p, Bytes self, Matrices mat2, double, int64_t, double,
                    int64_t mat2_zero_point, double, int64_t, Ints, View<int8_t> out) {
  p = {};
  if (out.numel() == 0) return Error::ok;  // then no size is bounded by the file
  p.rows = self.size(1), p.depth = self.size(2), p.columns = mat2.size(2);
  p.taps = 1 + ZeroWeights(mat2_zero_point).count;
  p.panels = tiles.panels;
  p.panel_bytes = p.taps * p.vectors() * BytePanels::vector_bytes;
  p.pointer_bytes = round_up(
      smaller(Plan::chunk, p.rows) * p.taps * static_cast<index_t>(sizeof(const int8_t*)), 64);
  p.slot_bytes = p.pointer_bytes + p.panels * (p.panel_bytes + 2 * BytePanels::vector_bytes);
  context.need_scratch(static_cast<size_t>(p.slot_bytes * thread_count(context.threads)));
  return Error::ok;
}

template <const ByteTiles& tiles>
Error tiled(Context& context, const Plan& p, Bytes self, Matrices mat2, double self_scale,
            int64_t self_zero_point, double mat2_scale, int64_t mat2_zero_point,
            double output_scale, int64_t output_zero_point, Ints range, View<int8_t> out) {
  if (out.numel() == 0) return Error::ok;
  const ZeroWeights zeros(mat2_zero_point);
  const Rounding rounding(output_zero_point, range[0], range[1]);
  const float factor = product_scale(self_scale, static_cast<float>(mat2_scale), output_scale);
  const int32_t shift = -static_cast<int32_t>(self_zero_point) - tiles.shift;
  parallel_for_threads(context.threads, self.size(0) * p.groups(), [&](index_t task, int thread) {
    const index_t batch = task / p.groups(),
                  begin = task % p.groups() * p.panels * BytePanels::rows,
                  count = smaller(p.columns - begin, p.panels * BytePanels::rows),
                  panels = BytePanels::panels_of(count);
    std::byte* slot = static_cast<std::byte*>(context.scratch) + thread * p.slot_bytes;
    auto** const x = reinterpret_cast<const int8_t**>(slot);
    auto* const weight = reinterpret_cast<int8_t*>(slot + p.pointer_bytes);
    auto* const first =
        reinterpret_cast<int32_t*>(slot + p.pointer_bytes + p.panels * p.panel_bytes);
    auto* const scale = reinterpret_cast<float*>(first + p.panels * BytePanels::rows);
    for (index_t i = 0; i < panels; ++i) {
      const index_t at = i * BytePanels::rows, here = smaller(BytePanels::rows, count - at);
      int32_t sums[BytePanels::rows] = {};
      pack(p, mat2, mat2.data() + batch * mat2.stride(0), begin + at, here, zeros,
           weight + i * p.panel_bytes, sums);
      for (index_t r = 0; r < BytePanels::rows; ++r)
        first[at + r] = add_product(0, shift, sums[r]), scale[at + r] = factor;
    }
    const index_t pitch = smaller(Plan::chunk, p.rows);
    for (index_t row = 0; row < p.rows; row += Plan::chunk) {
      const index_t rows = smaller(p.rows - row, Plan::chunk);
      for (index_t t = 0; t < p.taps; ++t)
        for (index_t r = 0; r < rows; ++r)
          x[t * pitch + r] = self.data() + ((batch * p.rows) + row + r) * p.depth;
      tiles.multiply({x, pitch, p.taps, p.vectors()},
                     {weight, p.panel_bytes, first, scale, count, rounding,
                      out.data() + ((batch * p.rows) + row) * p.columns + begin, p.columns},
                     panels, rows);
    }
  });
  return Error::ok;
}
#endif

}  // namespace

TAPER_KERNEL(taper_bmm_q8, i8, bmm)
#if TAPER_TILES_X86 || TAPER_TILES_ARM64
#define TAPER_BYTE_MATRICES(level, needs)                        \
  TAPER_RECORD(taper_bmm_q8, taper_bmm_q8_i8_##level, needs, {}, \
               prepare_tiled<byte_tiles_##level>, tiled<byte_tiles_##level>)
TAPER_OF_BYTE_TILES(TAPER_BYTE_MATRICES)
#endif

}  // namespace taper::quantized
