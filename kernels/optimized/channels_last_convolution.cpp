// taper::convolution: two spatial dimensions, channels last. The sums have the bits of
// convolution's at the same level: over the channels of a group, then its taps, in blocks of
// `gemm_depth_block`.
#include <cstring>

#include "taper/kernels/optimized/cut.h"
#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/image_finish.h"
#include "taper/kernels/optimized/narrow_records.h"
#include "taper/kernels/optimized/panels.h"
#include "taper/kernels/portable/channels_last.h"
#include "taper/kernels/portable/widened.h"
#include "taper/kernels/shapes/channels_last.h"

namespace taper::optimized {
namespace {

using In = View<const float>;
using Ints = Span<const int64_t>;
using portable::Correlation;

constexpr index_t most_chunk = 384;  // pixels

// How the work is cut: into tasks of some rows of an image's results, and some of a group's
// channels. A task that meets padding first copies the rows of its group that it reads, between
// zeros.
struct Plan {
  Correlation c;
  bool is_depthwise, pads, packs;
  index_t bands;     // of an image's rows
  index_t parts;     // of a group's channels; of all channels if depthwise
  index_t chunk;     // pixels whose inputs stay in the nearest caches
  index_t pixel;     // from one pixel of the input, or of the copy, to the next one
  index_t to_pixel;  // the same of the result
  index_t slots, bytes_per_slot, packed_bytes, shared_bytes;
  size_t scratch_bytes() const {
    return static_cast<size_t>(shared_bytes + slots * bytes_per_slot);
  }
};

index_t depth_of(const Correlation& c) { return c.inputs * c.taps(); }
index_t padded_width(const Correlation& c) { return c.in[2] + 2 * c.padding[2]; }
// The rows of the padded image below `band` rows of results.
index_t rows_below(const Correlation& c, index_t band) {
  return (band - 1) * c.stride[1] + (c.kernel[1] - 1) * c.dilation[1] + 1;
}
// A group's channels as panels; all channels, if depthwise.
index_t panel_channels(const Plan& p) { return p.is_depthwise ? p.c.groups : p.c.outputs; }
index_t panel_groups(const Plan& p) { return p.is_depthwise ? 1 : p.c.groups; }
index_t floats_of_group(const Plan& p) {
  return round_up(panel_channels(p), panel_width) * depth_of(p.c);
}

// ---- tasks ----

// Decides on the tasks. A thread that has some of the rows reads all weights. One that has some of
// the channels reads the whole image, and what reads the result finds parts of it in another
// processor's cache.
void cut(const PixelTiles& tiles, index_t threads, Plan& p) {
  p.parts = 1;
  const Correlation& c = p.c;
  const double depth = static_cast<double>(depth_of(c)),
               weights = depth * static_cast<double>(c.groups * c.outputs),
               images =
                   static_cast<double>(c.batch) *
                   (static_cast<double>(c.in_plane()) * static_cast<double>(c.groups * c.inputs) +
                    static_cast<double>(c.out_plane()) * static_cast<double>(c.groups * c.outputs)),
               work = weights * static_cast<double>(c.batch) * static_cast<double>(c.out_plane());
  const double least_work = p.is_depthwise ? 1 << 15 : 1 << 17;  // 2 us, for another thread
  threads = threads_for(work, least_work, threads);
  if (threads <= 1) return;

  const index_t rows = c.out[1], panels = ceil_div(panel_channels(p), panel_width),
                units = c.batch * panel_groups(p);
  const Cut by_rows = cut_of(units, rows, threads, p.bands, rows),
            by_channels = cut_of(units * p.bands, panels, threads, 1, panels);
  const double row_cost = work * by_rows.slowest + work_of_far_read * weights,
               channel_cost = work * by_channels.slowest + work_of_far_read * images;
  if (channel_cost < row_cost) {
    p.parts = by_channels.pieces;
    const index_t tile_panels = larger(1, tiles.columns() / panel_width);
    p.parts = finer(p.parts, panels / (4 * tile_panels), work);
  } else {
    p.bands = finer(by_rows.pieces, rows, work);
  }
}

// `runs_program`: what it reads is written just before, and should still be near.
Plan plan_convolution(const PixelTiles& tiles, const Correlation& c, Layout weight,
                      bool runs_program, int thread_count) {
  // A copy stays in the second-level cache, if it is not smaller than the weights, which each band
  // reads.
  const index_t image_floats = larger(64 * 1024, c.outputs * depth_of(c) / 4);
  constexpr index_t chunk_floats = 40 * 1024, result_floats = 8 * 1024, least_chunk = 24;

  Plan p{};
  p.c = c;
  p.is_depthwise = c.inputs == 1 && c.outputs == 1 && c.taps() <= gemm_depth_block &&
                   c.kernel[1] <= DepthwiseRow::most_tap_rows;
  p.pads = !p.is_depthwise && (c.padding[1] > 0 || c.padding[2] > 0);
  p.packs =
      weight == Layout::dense || (!p.is_depthwise && c.groups > 1 && c.outputs % panel_width != 0);
  p.slots = thread_count;

  // In a copy, pixels are kept from lying a large power of two apart: the cache has few places for
  // such neighbours.
  const bool is_power = c.inputs % 64 == 0;
  p.pixel = p.pads ? c.inputs + (is_power ? panel_width : 0) : c.groups * c.inputs;
  const index_t rows = larger(1, c.out[1]), row = larger(1, padded_width(c) * p.pixel);
  p.bands = 1;
  if (p.pads) {  // of as many rows as fit; at least one
    const index_t reach = rows_below(c, 1), fit = image_floats / row;
    p.bands = fit < reach ? rows : ceil_div(rows, (fit - reach) / c.stride[1] + 1);
  }
  // Scratch must not shrink for a larger shape, whatever its channels are.
  const index_t most_row = padded_width(c) * (c.inputs + panel_width);
  p.bytes_per_slot =
      !p.pads ? 0
              : bytes_of_floats(smaller(rows_below(c, rows) * most_row,
                                        larger(image_floats, rows_below(c, 1) * most_row)));

  cut(tiles, thread_count, p);
  const index_t inputs = larger(1, c.inputs * (c.taps() == 1 ? 1 : c.stride[1] * c.stride[2]));
  index_t fitting = chunk_floats / inputs;
  if (runs_program) fitting = smaller(fitting, result_floats / larger(1, c.outputs / p.parts));
  p.chunk = smaller(most_chunk, larger(least_chunk, fitting / least_chunk * least_chunk));

  p.packed_bytes = p.packs ? bytes_of_floats(panel_groups(p) * floats_of_group(p)) : 0;
  p.shared_bytes =
      p.packed_bytes +
      (p.is_depthwise ? 0 : round_up(depth_of(c) * index_t{sizeof(int32_t)}, scratch_alignment));
  return p;
}

// What a run needs beside its plan.
struct Convolution {
  const PixelTiles& tiles;
  const Plan& plan;
  const float* input;
  const float* weight;     // in panels, group by group
  const int32_t* offsets;  // nullptr: one tap
  ImageFinish finish;
  float* out;

  index_t in_channels() const { return plan.c.groups * plan.c.inputs; }
};

// ---- dense ----

// The rows below a band between zeros: (rows, padded width, p.pixel). `image`: from the group's
// first channel on.
void copy_padded(const Plan& p, const float* image, index_t first_row, index_t rows, float* to) {
  const Correlation& c = p.c;
  const index_t step = c.groups * c.inputs, left = c.padding[2] * p.pixel,
                row = padded_width(c) * p.pixel;
  const auto zero = [](float* at, index_t count) {
    std::memset(at, 0, static_cast<size_t>(count) * sizeof(float));
  };
  const auto copy = [](const float* from, index_t count, float* at) {
    std::memcpy(at, from, static_cast<size_t>(count) * sizeof(float));
  };
  for (index_t i = 0; i < rows; ++i, to += row) {
    const index_t from = first_row + i - c.padding[1];
    if (from < 0 || from >= c.in[1]) {
      zero(to, row);
      continue;
    }
    zero(to, left), zero(to + row - left, left);
    const float* pixels = image + from * c.in[2] * step;
    if (p.pixel == step)
      copy(pixels, c.in[2] * step, to + left);
    else
      for (index_t x = 0; x < c.in[2]; ++x)
        copy(pixels + x * step, c.inputs, to + left + x * p.pixel);
  }
}

// The widest tile of one pixel for so many channels. nullptr: the others are as wide.
const PixelTiles::Wide* wide_tile(const PixelTiles& tiles, index_t channels) {
  for (const PixelTiles::Wide& wide : tiles.wide)
    if (wide.vectors * tiles.lanes <= channels) return &wide;
  return nullptr;
}

// The results [first, last) of a band, counted pixel by pixel, for the channels [begin, end) of a
// group. `rows`: the rows below the band, from the group's first channel on.
void run_chunk(const Convolution& v, const float* rows, index_t group, index_t first, index_t last,
               index_t begin, index_t end, float* out) {
  const Plan& p = v.plan;
  const Correlation& c = p.c;
  const float* pixel[most_chunk];
  const index_t width = p.pads ? padded_width(c) : c.in[2], step = c.stride[2] * p.pixel;
  const index_t depth = depth_of(c), count = last - first;
  index_t y = first / c.out[2], x = first % c.out[2];
  for (index_t i = 0; i < count; ++y, x = 0) {  // the rest of a row
    const float* from = rows + y * c.stride[1] * width * p.pixel + x * step;
    for (const index_t end = i + smaller(c.out[2] - x, count - i); i < end; ++i, from += step)
      pixel[i] = from;
  }
  const PackedMatrix weight{v.weight + group * (p.packs ? floats_of_group(p) : 0), depth};
  const index_t channel0 = p.packs ? 0 : group * c.outputs;  // within `weight`
  for (index_t j = begin, columns; j < end; j += columns) {
    const PixelTiles::Wide* const wide = count == 1 ? wide_tile(v.tiles, end - j) : nullptr;
    columns = wide != nullptr ? index_t{wide->vectors} * v.tiles.lanes : v.tiles.columns();
    const Finish finish = v.finish.from_channel(group * c.outputs + j);
    PixelSums s{};
    s.columns = smaller(columns, end - j);
    const index_t vectors = ceil_div(s.columns, v.tiles.lanes);
    const EvenParts tiles(count,
                          wide != nullptr ? 1 : ceil_div(count, v.tiles.pixels[vectors - 1]));
    s.panel_step = weight.panel_floats(), s.to_pixel = p.to_pixel;
    for (index_t k = 0; k == 0 || k < depth; k += gemm_depth_block) {
      s.depth = smaller(gemm_depth_block, depth - k), s.first = k;
      s.offsets = v.offsets == nullptr ? nullptr : v.offsets + k;
      s.weight = weight.at(channel0 + j, k);
      s.adds = k > 0;
      const bool is_last = k + gemm_depth_block >= depth;
      s.finish = is_last ? &finish : nullptr;
      // the next weights come from memory while the tiles of these are computed
      const index_t next_k = is_last ? 0 : k + gemm_depth_block, next_j = is_last ? j + columns : j;
      const bool has_next = next_j < end;
      const PrefetchOfPanels prefetch(has_next ? weight.at(channel0 + next_j, next_k) : s.weight,
                                      has_next ? smaller(gemm_depth_block, depth - next_k) : 0,
                                      s.depth, tiles.count);
      for (index_t t = 0; t < tiles.count; ++t) {
        const index_t from = tiles.begin(t), length = tiles.length(t);
        s.next = prefetch.of_tile(t);
        s.to = out + from * s.to_pixel + group * c.outputs + j;
        (wide != nullptr ? wide->tile : v.tiles.tile[length - 1][vectors - 1])(s, pixel + from);
      }
    }
  }
}

void run_dense(const Convolution& v, std::byte* slots, const Threads* threads) {
  const Plan& p = v.plan;
  const Correlation& c = p.c;
  const index_t panels = ceil_div(c.outputs, panel_width);
  parallel_for_threads(
      threads, c.batch * c.groups * p.bands * p.parts, [&](index_t task, index_t slot) {
        const index_t part = task % p.parts, band = task / p.parts % p.bands,
                      group = task / (p.parts * p.bands) % c.groups,
                      image = task / (p.parts * p.bands * c.groups);
        const index_t first_row = part_begin(c.out[1], p.bands, band),
                      last_row = part_begin(c.out[1], p.bands, band + 1);
        const index_t begin = part_begin(panels, p.parts, part) * panel_width,
                      end = smaller(c.outputs, part_begin(panels, p.parts, part + 1) * panel_width);
        if (begin >= end || first_row >= last_row) return;
        const float* from = v.input + image * c.in_plane() * v.in_channels() + group * c.inputs;
        const float* rows = from + first_row * c.stride[1] * c.in[2] * v.in_channels();
        if (p.pads) {
          float* copy = reinterpret_cast<float*>(slots + slot * p.bytes_per_slot);
          copy_padded(p, from, first_row * c.stride[1], rows_below(c, last_row - first_row), copy);
          rows = copy;
        }
        const index_t count = (last_row - first_row) * c.out[2],
                      pixel0 = (image * c.out[1] + first_row) * c.out[2],
                      chunks = ceil_div(count, p.chunk);
        for (index_t i = 0; i < chunks; ++i) {
          const index_t first = part_begin(count, chunks, i),
                        last = part_begin(count, chunks, i + 1);
          run_chunk(v, rows, group, first, last, begin, end, v.out + (pixel0 + first) * p.to_pixel);
          v.finish.finish_pixels(pixel0 + first, last - first, group * c.outputs + begin,
                                 end - begin);
        }
      });
}

// ---- depthwise ----

void run_depthwise(const Convolution& v, const Threads* threads) {
  alignas(64) static constexpr float zeros[panel_width] = {};
  const Plan& p = v.plan;
  const Correlation& c = p.c;
  const index_t panels = ceil_div(c.groups, panel_width);
  parallel_for(threads, c.batch * p.bands * p.parts, [&](index_t task) {
    const index_t part = task % p.parts, band = task / p.parts % p.bands,
                  image = task / (p.parts * p.bands);
    const index_t begin = part_begin(panels, p.parts, part) * panel_width,
                  end = smaller(c.groups, part_begin(panels, p.parts, part + 1) * panel_width);
    if (begin >= end) return;
    DepthwiseRow r;
    r.tap_rows = c.kernel[1], r.tap_columns = c.kernel[2];
    r.stride = c.stride[2], r.padding = c.padding[2], r.dilation = c.dilation[2];
    r.width = c.in[2], r.result_width = c.out[2];
    r.weight = PackedMatrix{v.weight, c.taps()}.at(begin, 0);
    r.channels = end - begin, r.to_pixel = p.to_pixel;
    r.finish = v.finish.from_channel(begin);
    const float* from = v.input + image * c.in_plane() * c.groups + begin;
    const index_t last = part_begin(c.out[1], p.bands, band + 1);
    for (index_t y = part_begin(c.out[1], p.bands, band); y < last; ++y) {
      for (index_t i = 0; i < r.tap_rows; ++i) {
        const index_t row = y * c.stride[1] - c.padding[1] + i * c.dilation[1];
        const bool inside = row >= 0 && row < c.in[1];
        r.rows[i] = inside ? from + row * c.in[2] * c.groups : zeros;
        r.row_steps[i] = inside ? c.groups : 0;
      }
      const index_t pixel = (image * c.out[1] + y) * c.out[2];
      r.to = v.out + pixel * p.to_pixel + begin;
      v.tiles.depthwise_row(r);
      v.finish.finish_pixels(pixel, c.out[2], begin, end - begin);
    }
  });
}

// ---- weights ----

// Brings weights into panels, each group's from the beginning of one.
void pack_weights(const Microkernels& kernels, const Plan& p, In weight, float* to,
                  const Threads* threads) {
  const index_t channels = panel_channels(p), depth = depth_of(p.c),
                panels = ceil_div(channels, panel_width);
  const PackedMatrix packed{weight.data(), depth};
  parallel_for(threads, panel_groups(p) * panels, [&](index_t task) {
    const index_t group = task / panels, j = task % panels * panel_width,
                  count = smaller(panel_width, channels - j), first = group * channels + j;
    float* panel = to + group * floats_of_group(p) + j * depth;
    if (count < panel_width)
      std::memset(panel, 0, static_cast<size_t>(panel_width * depth) * sizeof(float));
    if (weight.layout() == Layout::dense)
      return kernels.pack(weight.data() + first * depth, depth, 1, count, depth, panel,
                          panel_width);
    for (index_t k = 0; k < depth; ++k)
      for (index_t i = 0; i < count; ++i) panel[k * panel_width + i] = *packed.at(first + i, k);
  });
}

// ---- the records ----

// Which calls a record runs.
enum class Calls : uint8_t {
  all,
  plain,         // the program has no other operators than is_plain takes
  plain_threes,  // and depthwise windows are at most 3 x 3
};

template <CpuLevel level, Calls calls>
constexpr const PixelTiles& tiles_for() {
  if constexpr (calls == Calls::plain_threes)
    return pixel_tiles_of_threes<level>();
  else
    return pixel_tiles<level>();
}

// Whether the windows of a depthwise convolution are larger than 3 x 3.
constexpr bool is_wide_depthwise(index_t groups, const Shape& weight) {
  return weight.sizes[0] == groups && weight.sizes[1] == 1 &&
         (weight.sizes[2] > 3 || weight.sizes[3] > 3);
}

template <CpuLevel level, Calls calls = Calls::all>
Error prepare(Context& context, Plan& plan, In input, In weight, Maybe<In>, Ints stride,
              Ints padding, Ints dilation, int64_t groups, ViewList<const float>, Ints program,
              Span<const double> constants, portable::Pixels out) {
  if (calls != Calls::all && !portable::fused::is_plain(program))
    return context.fail(Error::not_supported,
                        TAPER_TEXT("this table of kernels runs only clamps and sums behind a "
                                   "convolution; write it again with taper export --kernels, from "
                                   "this program"));
  if (calls == Calls::plain_threes && is_wide_depthwise(groups, weight.shape()))
    return context.fail(Error::not_supported,
                        TAPER_TEXT("this table of kernels runs depthwise convolutions of at most "
                                   "3 x 3; write it again with taper export --kernels, from this "
                                   "program"));
  const Correlation c = portable::image_correlation(input.shape(), out.shape(), weight.shape(),
                                                    stride, padding, dilation, groups);
  if (!portable::is_countable(c))
    return context.fail(Error::not_supported,
                        TAPER_TEXT("the image between its zeros is larger than any memory"));
  plan = plan_convolution(tiles_for<level, calls>(), c, weight.layout(),
                          runs_program(program, constants), thread_count(context.threads));
  if (c.taps() > 1 && rows_below(c, 1) * padded_width(c) * plan.pixel > INT32_MAX)
    return context.fail(Error::not_supported,
                        TAPER_TEXT("the rows below a kernel have more than 2^31 elements"));
  context.need_scratch(plan.scratch_bytes());
  return portable::take_pixel_step(context, out, plan.to_pixel);
}

template <CpuLevel level, Calls calls = Calls::all>
Error run(Context& context, const Plan& plan, In input, In weight, Maybe<In> bias, Ints, Ints, Ints,
          int64_t, ViewList<const float> others, Ints program, Span<const double> constants,
          portable::Pixels out) {
  const Correlation& c = plan.c;
  std::byte* scratch = static_cast<std::byte*>(context.scratch);
  constexpr bool plain = calls != Calls::all;
  Convolution v{tiles_for<level, calls>(),
                plan,
                input.data(),
                weight.data(),
                nullptr,
                image_finish<level, plain>(bias, others, program, constants, out, plan.to_pixel),
                out.data()};
  if (plan.packs) {
    pack_weights(packing_microkernels<level>(), plan, weight, reinterpret_cast<float*>(scratch),
                 context.threads);
    v.weight = reinterpret_cast<const float*>(scratch);
  }
  if (plan.is_depthwise) {
    run_depthwise(v, context.threads);
    return Error::ok;
  }
  if (c.taps() > 1 && c.inputs > 0) {
    int32_t* offset = reinterpret_cast<int32_t*>(scratch + plan.packed_bytes);
    v.offsets = offset;
    const index_t width = plan.pads ? padded_width(c) : c.in[2], taps = c.taps();
    for (index_t ky = 0; ky < c.kernel[1]; ++ky)
      for (index_t kx = 0; kx < c.kernel[2]; ++kx)
        *offset++ =
            static_cast<int32_t>((ky * c.dilation[1] * width + kx * c.dilation[2]) * plan.pixel);
    for (index_t i = taps; i < depth_of(c); ++i, ++offset) *offset = offset[-taps] + 1;
  }
  run_dense(v, scratch + plan.shared_bytes, context.threads);
  return Error::ok;
}

// Filters that are constants are packed once, those of depthwise convolutions, too.
template <CpuLevel level>
constexpr portable::WidenedPackings<1> packings{
    portable::to_f32_layout<1, Layout::panels_of_first, -1, bytes_of_panels_of_first,
                            pack_first<level>>};

}  // namespace

TAPER_PACKING_KERNEL_LEVELS(taper_convolution, prepare, run, packings)

// ---- records for some calls ----

#define TAPER_PLAIN_RECORDS(name, level)                                                           \
  TAPER_NARROW_RECORD(taper_convolution, name##_plain, CpuLevel::level, packings<CpuLevel::level>, \
                      (prepare<CpuLevel::level, Calls::plain>),                                    \
                      (run<CpuLevel::level, Calls::plain>))                                        \
  TAPER_NARROW_RECORD(taper_convolution, name##_plain_threes, CpuLevel::level,                     \
                      packings<CpuLevel::level>, (prepare<CpuLevel::level, Calls::plain_threes>),  \
                      (run<CpuLevel::level, Calls::plain_threes>))
TAPER_PLAIN_RECORDS(taper_convolution_f32, portable)
#if TAPER_X86_LEVELS
TAPER_PLAIN_RECORDS(taper_convolution_f32_avx2, avx2)
TAPER_PLAIN_RECORDS(taper_convolution_f32_avx512, avx512)
#endif

namespace {
bool is_plain(const Slot* arguments) {
  constexpr int program = 8;
  return portable::fused::is_plain({arguments[program].integers, arguments[program].size});
}
bool is_plain_with_threes(const Slot* arguments) {
  constexpr int weight = 1, groups = 6;
  return is_plain(arguments) &&
         !is_wide_depthwise(arguments[groups].integer, *arguments[weight].tensor->shape);
}
constexpr NarrowRecord plain_records[] = {
    {&taper_convolution_f32, &taper_convolution_f32_plain_threes, is_plain_with_threes},
    {&taper_convolution_f32, &taper_convolution_f32_plain, is_plain},
#if TAPER_X86_LEVELS
    {&taper_convolution_f32_avx2, &taper_convolution_f32_avx2_plain_threes, is_plain_with_threes},
    {&taper_convolution_f32_avx2, &taper_convolution_f32_avx2_plain, is_plain},
    {&taper_convolution_f32_avx512, &taper_convolution_f32_avx512_plain_threes,
     is_plain_with_threes},
    {&taper_convolution_f32_avx512, &taper_convolution_f32_avx512_plain, is_plain},
#endif
};
constexpr Span<const NarrowRecord> all_plain_records(plain_records);
}  // namespace
const Span<const NarrowRecord> narrow_convolutions = all_plain_records;

}  // namespace taper::optimized
