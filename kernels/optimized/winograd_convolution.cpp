// taper::winograd_convolution, as sixteen products of matrices (tiles, channels) and (channels,
// outputs). Sums run over the channels, in blocks of `gemm_depth_block`.
#include "taper/kernels/optimized/cut.h"
#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/image_finish.h"
#include "taper/kernels/optimized/panels.h"
#include "taper/kernels/optimized/winograd.h"
#include "taper/kernels/portable/widened.h"
#include "taper/kernels/shapes/channels_last.h"

namespace taper::optimized {
namespace {

using In = View<const float>;
using Ints = Span<const int64_t>;
using portable::WinogradPanels, portable::WinogradTiles, portable::winograd_places;

constexpr index_t most_chunk = 96, least_chunk = 24;  // tiles

// A task is a range of an image's tiles, and a range of the results' channels.
struct Plan {
  index_t batch, height, width, inputs;  // of the input
  index_t out_height, out_width, outputs;
  index_t to_pixel;  // from one pixel of the result to the next one
  index_t pad_y, pad_x;
  WinogradTiles tiles;  // of an image
  index_t bands;        // of an image's tiles
  index_t parts;        // of the channels
  index_t chunk;        // tiles that are transformed together
  index_t tile_floats;  // from one tile's transformed inputs to the next one's
  bool packs;           // weights, in each call
  index_t packed_bytes, transformed_bytes, bytes_per_slot, slots;

  WinogradPanels panels(const float* weight) const { return {weight, outputs, inputs}; }
  size_t scratch_bytes() const {
    return static_cast<size_t>(packed_bytes + slots * bytes_per_slot);
  }
};

void cut(index_t threads, Plan& p) {
  p.bands = p.parts = 1;
  const double weights = static_cast<double>(winograd_places * p.inputs * p.outputs),
               tiles = static_cast<double>(p.batch * p.tiles.count()), work = weights * tiles,
               images = tiles * 4 * static_cast<double>(p.inputs + p.outputs);
  threads = threads_for(work, 1 << 17, threads);
  if (threads <= 1) return;
  const index_t panels = ceil_div(p.outputs, panel_width);
  const Cut by_tiles = cut_of(p.batch, p.tiles.count(), threads, 1, p.tiles.count()),
            by_channels = cut_of(p.batch, panels, threads, 1, panels);
  // Each part of the channels transforms the inputs for itself.
  constexpr double work_of_transform = 40;
  const double tile_cost = work * by_tiles.slowest + work_of_far_read * weights,
               channel_cost = work * by_channels.slowest + work_of_far_read * images +
                              work_of_transform * tiles * static_cast<double>(p.inputs);
  if (channel_cost < tile_cost)
    p.parts = by_channels.pieces;
  else
    p.bands = finer(by_tiles.pieces, larger(1, p.tiles.count() / least_chunk), work);
}

// What a run needs beside its plan.
struct Winograd {
  const PixelTiles& tiles;
  const WinogradTransforms& transforms;
  const Plan& plan;
  const float* input;
  const float* weight;  // in winograd_panels
  ImageFinish finish;
  float* out;
};

// Bᵀ d B for the tiles [first, last) of an image.
void transform_inputs(const Winograd& v, const float* image, index_t first, index_t last,
                      float* to) {
  alignas(64) static constexpr float zeros[panel_width] = {};
  const Plan& p = v.plan;
  WinogradInput w;
  w.channels = p.inputs, w.to_place = p.chunk * p.tile_floats;
  for (index_t t = first; t < last; ++t, to += p.tile_floats) {
    const index_t y = 2 * (t / p.tiles.columns) - p.pad_y, x = 2 * (t % p.tiles.columns) - p.pad_x;
    for (index_t i = 0; i < 4; ++i) {
      const bool inside = y + i >= 0 && y + i < p.height;
      w.rows[i] = inside ? image + ((y + i) * p.width + x) * p.inputs : zeros;
      w.row_steps[i] = inside ? p.inputs : 0;
    }
    w.left = x < 0 ? smaller(-x, 4) : 0, w.right = smaller(4, larger(0, p.width - x));
    w.to = to;
    v.transforms.input(w);
  }
}

// The sixteen products for `count` tiles and the channels from `channel` on, as many as a tile of
// pixels has.
void multiply(const Winograd& v, const float* const* tile, index_t count, index_t channel,
              index_t columns, float* sums) {
  const Plan& p = v.plan;
  const WinogradPanels panels = p.panels(v.weight);
  const index_t vectors = ceil_div(columns, v.tiles.lanes),
                pieces = ceil_div(count, v.tiles.pixels[vectors - 1]);
  PixelSums s{};
  s.columns = vectors * v.tiles.lanes;
  s.offsets = nullptr, s.finish = nullptr;
  s.panel_step = panels.panel_floats();
  s.to_pixel = v.tiles.columns();
  for (int place = 0; place < winograd_places; ++place, sums += p.chunk * s.to_pixel)
    for (index_t k = 0; k == 0 || k < p.inputs; k += gemm_depth_block) {
      s.depth = smaller(gemm_depth_block, p.inputs - k);
      s.first = place * p.chunk * p.tile_floats + k;
      s.weight = panels.at(place, channel, k);
      s.adds = k > 0;
      // the next weights come from memory while the tiles of these are computed
      const bool is_last = k + gemm_depth_block >= p.inputs;
      const index_t next_k = is_last ? 0 : k + gemm_depth_block;
      const int next_place = is_last ? place + 1 : place;
      const bool has_next = next_place < winograd_places;
      const PrefetchOfPanels prefetch(has_next ? panels.at(next_place, channel, next_k) : s.weight,
                                      has_next ? smaller(gemm_depth_block, p.inputs - next_k) : 0,
                                      s.depth, pieces);
      for (index_t i = 0; i < pieces; ++i) {
        s.next = prefetch.of_tile(i);
        const index_t from = part_begin(count, pieces, i), to = part_begin(count, pieces, i + 1);
        s.to = sums + from * s.to_pixel;
        v.tiles.tile[to - from - 1][vectors - 1](s, tile + from);
      }
    }
}

void transform_outputs(const Winograd& v, const float* sums, index_t image, index_t first,
                       index_t last, index_t channel, index_t columns) {
  const Plan& p = v.plan;
  WinogradOutput w;
  w.from_place = p.chunk * v.tiles.columns();
  w.channels = columns;
  w.to_pixel = p.to_pixel, w.to_row = p.out_width * p.to_pixel;
  w.finish = v.finish.from_channel(channel);
  for (index_t t = first; t < last; ++t, sums += v.tiles.columns()) {
    const index_t y = 2 * (t / p.tiles.columns), x = 2 * (t % p.tiles.columns);
    w.rows = smaller(2, p.out_height - y), w.columns = smaller(2, p.out_width - x);
    w.from = sums;
    w.to = v.out + ((image * p.out_height + y) * p.out_width + x) * p.to_pixel + channel;
    v.transforms.output(w);
  }
}

// The program for the results of some tiles.
void finish_tiles(const Winograd& v, index_t image, index_t first, index_t last, index_t channel,
                  index_t channels) {
  const Plan& p = v.plan;
  for (index_t t = first; t < last;) {
    const index_t row = t / p.tiles.columns, end = smaller(last, (row + 1) * p.tiles.columns),
                  x = 2 * (t % p.tiles.columns),
                  count = smaller(p.out_width, x + 2 * (end - t)) - x;
    for (index_t y = 2 * row; y < smaller(p.out_height, 2 * row + 2); ++y)
      v.finish.finish_pixels((image * p.out_height + y) * p.out_width + x, count, channel,
                             channels);
    t = end;
  }
}

void run_tasks(const Winograd& v, std::byte* scratch, const Threads* threads) {
  const Plan& p = v.plan;
  const index_t panels = ceil_div(p.outputs, panel_width);
  parallel_for_threads(threads, p.batch * p.bands * p.parts, [&](index_t task, index_t slot) {
    const index_t part = task % p.parts, band = task / p.parts % p.bands,
                  image = task / (p.parts * p.bands);
    const index_t begin = part_begin(panels, p.parts, part) * panel_width,
                  end = smaller(p.outputs, part_begin(panels, p.parts, part + 1) * panel_width);
    if (begin >= end) return;
    float* inputs = reinterpret_cast<float*>(scratch + slot * p.bytes_per_slot);
    float* sums = reinterpret_cast<float*>(scratch + slot * p.bytes_per_slot + p.transformed_bytes);
    const float* tile[most_chunk];
    for (index_t t = 0; t < p.chunk; ++t) tile[t] = inputs + t * p.tile_floats;
    const index_t first = part_begin(p.tiles.count(), p.bands, band),
                  count = part_begin(p.tiles.count(), p.bands, band + 1) - first,
                  chunks = ceil_div(count, p.chunk);
    for (index_t i = 0; i < chunks; ++i) {
      const index_t from = first + part_begin(count, chunks, i),
                    to = first + part_begin(count, chunks, i + 1);
      transform_inputs(v, v.input + image * p.height * p.width * p.inputs, from, to, inputs);
      for (index_t j = begin; j < end; j += v.tiles.columns()) {
        const index_t columns = smaller(v.tiles.columns(), end - j);
        multiply(v, tile, to - from, j, columns, sums);
        transform_outputs(v, sums, image, from, to, j, columns);
      }
      finish_tiles(v, image, from, to, begin, end - begin);
    }
  });
}

template <CpuLevel level>
Error prepare(Context& context, Plan& p, In input, In weight, Maybe<In>, Ints padding,
              ViewList<const float>, Ints, Span<const double>, portable::Pixels out) {
  p = Plan{};
  p.batch = input.size(0), p.height = input.size(1), p.width = input.size(2);
  p.inputs = input.size(3);
  p.out_height = out.size(1), p.out_width = out.size(2), p.outputs = out.size(3);
  p.pad_y = padding[0], p.pad_x = padding[padding.size() - 1];
  p.tiles = portable::winograd_tiles(p.out_height, p.out_width);
  p.packs = weight.layout() == Layout::dense;
  p.slots = thread_count(context.threads);
  // Neighbouring tiles do not lie a large power of two apart: the cache has few places for such.
  p.tile_floats = round_up(p.inputs, panel_width) + (p.inputs % 64 == 0 ? panel_width : 0);
  // the transformed inputs stay in the second-level cache
  constexpr index_t cached_floats = 224 * 1024;
  const index_t fitting = cached_floats / (winograd_places * p.tile_floats);
  p.chunk = smaller(most_chunk, larger(least_chunk, fitting));
  p.chunk = smaller(p.chunk, larger(1, p.tiles.count()));
  cut(p.slots, p);

  // Scratch must not shrink for a larger shape, whatever its channels are.
  const index_t most_tile = round_up(p.inputs, panel_width) + panel_width,
                tiles = smaller(p.tiles.count(), most_chunk);
  p.transformed_bytes =
      bytes_of_floats(smaller(winograd_places * tiles * most_tile,
                              larger(cached_floats, winograd_places * least_chunk * most_tile)));
  p.bytes_per_slot = p.transformed_bytes +
                     bytes_of_floats(winograd_places * tiles * pixel_tiles<level>().columns());
  p.packed_bytes =
      p.packs ? bytes_of_floats(winograd_places * p.panels(nullptr).matrix_floats()) : 0;
  context.need_scratch(p.scratch_bytes());
  return portable::take_pixel_step(context, out, p.to_pixel);
}

template <CpuLevel level>
Error run(Context& context, const Plan& plan, In input, In weight, Maybe<In> bias, Ints,
          ViewList<const float> others, Ints program, Span<const double> constants,
          portable::Pixels out) {
  std::byte* scratch = static_cast<std::byte*>(context.scratch);
  Winograd v{pixel_tiles<level>(),
             winograd_transforms<level>(),
             plan,
             input.data(),
             weight.data(),
             image_finish<level>(bias, others, program, constants, out, plan.to_pixel),
             out.data()};
  if (plan.packs) {
    float* packed = reinterpret_cast<float*>(scratch);
    parallel_for(context.threads, ceil_div(plan.outputs, panel_width), [&](index_t panel) {
      pack_winograd_panel(*weight.ref, small_floats<level>, panel, packed);
    });
    v.weight = packed;
  }
  run_tasks(v, scratch + plan.packed_bytes, context.threads);
  return Error::ok;
}

template <CpuLevel level>
void pack_filters(const TensorRef& source, void* packed) {
  pack_winograd_panels(source, small_floats<level>, packed);
}
template <CpuLevel level>
constexpr portable::WidenedPackings<1> packings{
    portable::to_f32_layout<1, Layout::winograd_panels, -1, bytes_of_winograd_panels,
                            pack_filters<level>>};

}  // namespace

TAPER_PACKING_KERNEL_LEVELS(taper_winograd_convolution, prepare, run, packings)

}  // namespace taper::optimized
