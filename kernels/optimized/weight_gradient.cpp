// The gradient of a convolution's weight, and of its bias.
//
//   w[o, i, k] = sum over images n and positions p of
//                y[n, o, p] x[n, i, p * stride - padding + k * dilation]
//
// is a product over positions. x is copied with its channels innermost, and with its padding. Then
// the elements that one position multiplies for one row of the kernel, (columns of the kernel,
// channels), lie one behind the other in memory: they are a row of b.
#include <cstring>

#include "taper/kernels/optimized/correlation.h"
#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/portable/pays.h"

namespace taper::optimized {
namespace {

// Small weights have several partial sums. Large weights have one, and tasks share its rows.
constexpr index_t small_weight = 64 * 1024, medium_weight = 256 * 1024;  // floats
constexpr index_t copy_floats = 64 * 1024;  // fits into the second-level cache

// All numbers that follow from the shape. Images are summed in `chunks` partial sums, which are
// added in order at the end.
struct Layout {
  index_t channels;         // inputs times depth taps: channels of the copy
  index_t columns;          // of the copy
  index_t windows, window;  // stretches in a row of the kernel, and the elements of one
  index_t partial_row,
      partial;  // floats of a row of a partial sum (one output, one window), of the whole
  index_t chunks, output_block, blocks;
  index_t band, tall, band_rows;  // output rows of a task's step, rows of x that one output row and
                                  // that a band needs

  Layout(const Microkernels& kernels, const Correlation& c) {
    channels = c.inputs * c.kernel[0];
    columns = (c.out[2] - 1) * c.stride[2] + (c.kernel[2] - 1) * c.dilation[2] + 1;
    windows = c.dilation[2] == 1 ? 1 : c.kernel[2];
    window = channels * (c.dilation[2] == 1 ? c.kernel[2] : 1);
    partial_row = round_up(window, kernels.lanes);
    partial = c.groups * c.kernel[1] * windows * c.outputs * partial_row;

    chunks = larger(1, smaller(c.batch, partial <= small_weight    ? 8
                                        : partial <= medium_weight ? 4
                                                                   : 1));
    output_block = chunks > 1 ? c.outputs : smaller(c.outputs, 96);
    blocks = ceil_div(c.outputs, output_block);

    tall = (c.kernel[1] - 1) * c.dilation[1] + 1;
    const index_t affordable = copy_floats / larger(1, columns * channels);
    band = larger(1, smaller(c.out[1], (affordable - tall) / c.stride[1] + 1));
    band_rows = (band - 1) * c.stride[1] + tall;
  }
  index_t positions(const Correlation& c) const { return band * c.out[2]; }
  index_t copy_size() const {
    return band_rows * columns * channels + 2 * Microkernels::most_lanes;
  }
};

// Copies x of one image and group, channels innermost, for the output rows [y0, y0 + band) at depth
// z.
void fill_copy(const Microkernels& kernels, const Correlation& c, const Layout& l, const float* x,
               index_t z, index_t y0, float* copy) {
  std::memset(copy, 0, static_cast<size_t>(l.copy_size()) * sizeof(float));
  const index_t first = smaller(c.padding[2], l.columns),
                last = smaller(l.columns, c.in[2] + c.padding[2]);
  for (index_t k = 0; k < c.kernel[0]; ++k) {
    const index_t depth = z * c.stride[0] - c.padding[0] + k * c.dilation[0];
    if (depth < 0 || depth >= c.in[0] || first >= last) continue;
    for (index_t i = 0; i < l.band_rows; ++i) {
      const index_t row = y0 * c.stride[1] - c.padding[1] + i;
      if (row < 0 || row >= c.in[1]) continue;
      kernels.pack(x + (depth * c.in[1] + row) * c.in[2] + first - c.padding[2], c.in_plane(), 1,
                   c.inputs, last - first,
                   copy + (i * l.columns + first) * l.channels + k * c.inputs, l.channels);
    }
  }
}

struct Scratch {
  float* copy;
  float* panel;   // (gemm_depth_block, rows of a tile) of y
  index_t* rows;  // where the window of a position begins in the copy
};

// Adds one image's part, for a range of outputs, to a partial sum.
void add_image(const Microkernels& kernels, const Correlation& c, const Layout& l, const float* x,
               const float* y, index_t first_output, index_t last_output, float* partial,
               const Scratch& s) {
  const index_t outputs = last_output - first_output, panels = ceil_div(outputs, kernels.rows);
  for (index_t z = 0; z < c.out[0]; ++z)
    for (index_t y0 = 0; y0 < c.out[1]; y0 += l.band) {
      fill_copy(kernels, c, l, x, z, y0, s.copy);
      const index_t positions = smaller(l.band, c.out[1] - y0) * c.out[2];
      const float* from = y + (z * c.out[1] + y0) * c.out[2];
      for (index_t k = 0; k < positions; k += gemm_depth_block)
        for (index_t p = 0; p < panels; ++p) {
          const index_t output = first_output + part_begin(outputs, panels, p),
                        rows = first_output + part_begin(outputs, panels, p + 1) - output;
          const index_t depth = smaller(gemm_depth_block, positions - k);
          kernels.pack(from + output * c.out_plane() + k, c.out_plane(), 1, rows, depth, s.panel,
                       rows);
          for (index_t i = 0; i < c.kernel[1] * l.windows; ++i) {
            const float* base = s.copy + (i / l.windows * c.dilation[1] * l.columns +
                                          i % l.windows * c.dilation[2]) *
                                             l.channels;
            float* to = partial + (i * c.outputs + output) * l.partial_row;
            for (index_t j = 0; j < l.partial_row; j += kernels.columns()) {
              const index_t vectors = smaller(kernels.vectors, (l.partial_row - j) / kernels.lanes);
              kernels.tile[rows - 1][vectors - 1](depth, s.panel, base + j, s.rows + k, to + j,
                                                  l.partial_row, true);
            }
          }
        }
    }
}

}  // namespace

CorrelationPlan plan_weight_gradient(const Microkernels& kernels, const Correlation& c,
                                     int thread_count) {
  const Layout l(kernels, c);
  const index_t row = l.columns * l.channels, rows = (c.out[1] - 1) * c.stride[1] + l.tall;
  // The scratch must not shrink for a larger shape, so these are upper bounds.
  index_t partials = l.chunks * l.partial;
  if (l.partial > small_weight) partials = larger(partials, smaller(c.batch, 8) * small_weight);
  if (l.partial > medium_weight) partials = larger(partials, smaller(c.batch, 4) * medium_weight);
  const index_t positions =
      smaller(c.out[1] * c.out[2], larger(c.out[2], copy_floats / larger(1, l.channels)));
  const index_t copy =
      smaller(rows * row, larger(copy_floats, l.tall * row)) + 2 * Microkernels::most_lanes;

  CorrelationPlan plan;
  plan.band = l.band;
  plan.shared_bytes = bytes_of_floats(partials) +
                      round_up((positions + Microkernels::rows_ahead) * index_t{sizeof(index_t)},
                               scratch_alignment);
  plan.slots = thread_count;
  plan.bytes_per_slot =
      bytes_of_floats(copy) + bytes_of_floats(gemm_depth_block * Microkernels::most_rows);
  return plan;
}

void run_weight_gradient(const Microkernels& kernels, const CorrelationPlan& plan,
                         const Correlation& c, const float* x, const float* y, float* weight,
                         void* scratch, const Threads* threads) {
  constexpr index_t least_work = 1 << 18;  // multiply-adds that pay for another thread
  if (c.batch * c.groups * c.outputs * c.inputs * c.taps() * c.out_plane() < least_work)
    threads = nullptr;
  const Layout l(kernels, c);
  float* partials = static_cast<float*>(scratch);
  index_t* rows = reinterpret_cast<index_t*>(static_cast<std::byte*>(scratch) +
                                             bytes_of_floats(l.chunks * l.partial));
  for (index_t i = 0; i < l.positions(c) + Microkernels::rows_ahead; ++i)
    rows[i] = (i / c.out[2] * c.stride[1] * l.columns + i % c.out[2] * c.stride[2]) * l.channels;

  const index_t group_partial = l.partial / c.groups;
  parallel_for_threads(threads, c.groups * l.chunks * l.blocks, [&](index_t task, index_t slot) {
    std::byte* own =
        static_cast<std::byte*>(scratch) + plan.shared_bytes + slot * plan.bytes_per_slot;
    const Scratch s{reinterpret_cast<float*>(own),
                    reinterpret_cast<float*>(own + bytes_of_floats(l.copy_size())), rows};
    const index_t block = task % l.blocks, chunk = task / l.blocks % l.chunks,
                  group = task / (l.blocks * l.chunks);
    const index_t first = part_begin(c.outputs, l.blocks, block),
                  last = part_begin(c.outputs, l.blocks, block + 1);
    float* partial = partials + chunk * l.partial + group * group_partial;
    for (index_t i = 0; i < c.kernel[1] * l.windows; ++i)
      std::memset(partial + (i * c.outputs + first) * l.partial_row, 0,
                  static_cast<size_t>((last - first) * l.partial_row) * sizeof(float));
    for (index_t n = part_begin(c.batch, l.chunks, chunk);
         n < part_begin(c.batch, l.chunks, chunk + 1); ++n) {
      const index_t unit = n * c.groups + group;
      add_image(kernels, c, l, x + unit * c.inputs * c.in_plane(),
                y + unit * c.outputs * c.out_plane(), first, last, partial, s);
    }
  });

  // From (row, window, output, column, depth tap, channel) to (output, channel, depth tap, row,
  // column).
  parallel_for(threads, c.groups * c.outputs, [&](index_t i) {
    const index_t group = i / c.outputs, output = i % c.outputs;
    float* to = weight + i * c.inputs * c.taps();
    for (index_t channel = 0; channel < c.inputs; ++channel)
      for (index_t d = 0; d < c.kernel[0]; ++d)
        for (index_t h = 0; h < c.kernel[1]; ++h)
          for (index_t w = 0; w < c.kernel[2]; ++w) {
            const index_t window = l.windows == 1 ? 0 : w, column = l.windows == 1 ? w : 0;
            const float* from = partials + group * group_partial +
                                ((h * l.windows + window) * c.outputs + output) * l.partial_row +
                                column * l.channels + d * c.inputs + channel;
            float sum = from[0];
            for (index_t chunk = 1; chunk < l.chunks; ++chunk) sum += from[chunk * l.partial];
            *to++ = sum;
          }
  });
}

void sum_channels(const Microkernels& kernels, index_t batch, index_t channels, index_t plane,
                  const float* y, float* sums, const Threads* threads) {
  threads = portable::if_it_pays(threads, batch * channels * plane);
  parallel_for(threads, channels, [&](index_t channel) {
    float sum = 0;
    for (index_t n = 0; n < batch; ++n)
      sum += kernels.sum(y + (n * channels + channel) * plane, plane);
    sums[channel] = sum;
  });
}

}  // namespace taper::optimized
