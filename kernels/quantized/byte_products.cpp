// taper::conv2d_q8 and taper::linear_q8 with the tiles of an instruction set.
#include <cstring>

#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/quantized/byte_convolution.h"
#include "taper/kernels/quantized/byte_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86 || TAPER_TILES_ARM64
namespace taper::quantized {
namespace {

using optimized::ceil_div;
using optimized::larger;
using optimized::part_begin;
using optimized::round_up;
using optimized::smaller;
using optimized::thread_count;

using Bytes = View<const int8_t>;
using Ints = Span<const int64_t>;

// Pixels of a task, and pointers to their taps.
constexpr index_t most_chunk = 64, most_pointers = 65536;

// How the work is cut: into tasks of some pixels of an image, and some panels of a group. Where the
// channels of a tap do not fill vectors, a task first copies the windows of its pixels.
struct Plan {
  ByteConvolution v;
  bool copies_windows, is_plain;
  index_t most_pixels;  // of a task
  index_t chunks;       // of an image
  index_t cuts;         // of a group's panels
  index_t zero_bytes, channel_bytes, pointer_bytes, slot_bytes;

  index_t pixels() const { return v.c.out_plane(); }
  // The end of a window is overwritten with what lies behind its last line.
  index_t window_bytes() const {
    return BytePanels::vectors_of(v.depth()) * BytePanels::vector + 16;
  }
};

Plan plan_of(const ByteConvolution& v, const ByteTiles& tiles, const Threads* threads) {
  Plan p{};
  // without results the weight has no elements, and no size is bounded by the file
  for (const index_t n : {v.c.batch, v.out_channels(), v.c.out[1], v.c.out[2]})
    if (n == 0) return p;
  p.v = v;
  const index_t taps = v.c.taps();
  p.is_plain = v.is_depthwise() && taps > ByteTiles::most_depthwise_taps;
  p.copies_windows = !v.is_depthwise() && taps > 1 && v.c.inputs % BytePanels::vector != 0;
  const index_t chunk = smaller(most_chunk, larger(1, most_pointers / taps));
  p.most_pixels = smaller(chunk, p.pixels());
  p.chunks = ceil_div(p.pixels(), chunk);
  p.cuts = 1;
  const index_t tasks = v.c.batch * v.parts() * p.chunks, wanted = 2 * thread_count(threads),
                steps = ceil_div(v.part_panels(), v.is_depthwise() ? 4 : tiles.panels);
  if (tasks > 0 && tasks < wanted) p.cuts = smaller(steps, ceil_div(wanted, tasks));
  if (p.cuts < 1) p.cuts = 1;
  p.zero_bytes = round_up(v.in_channels() + 64, 64);
  p.channel_bytes = round_up(v.parts() * v.part_panels() * BytePanels::rows * 4, 64);
  p.pointer_bytes = round_up(
      p.most_pixels * (p.copies_windows ? 1 : taps) * static_cast<index_t>(sizeof(const int8_t*)),
      64);
  p.slot_bytes = p.pointer_bytes +
                 (p.copies_windows ? round_up(p.most_pixels * p.window_bytes() + 64, 64) : 0);
  return p;
}

/// Which of `count` pixels have a tap inside the image: those in [left, right). The tap of the
/// first one is at `place` of a line of `extent`, and that of the next one `step` places further.
struct Inside {
  index_t left, right;

  Inside(index_t place, index_t step, index_t extent, index_t count) {
    const auto first_from = [&](index_t wanted) {
      return place >= wanted ? 0 : smaller(count, ceil_div(wanted - place, step));
    };
    left = first_from(0), right = larger(left, first_from(extent));
  }
};

// Copies a few bytes, and up to 15 more: behind both ends there is room for them.
void copy_line(const int8_t* from, index_t bytes, int8_t* to) {
  for (index_t i = 0; i < bytes; i += 16) std::memcpy(to + i, from + i, 16);
}
// The same for some lines, whose first bytes lie `step` and `pitch` apart.
void copy_lines(const int8_t* from, index_t step, index_t bytes, index_t count, index_t pitch,
                int8_t* to) {
  if (bytes <= 16)
    for (index_t i = 0; i < count; ++i) std::memcpy(to + i * pitch, from + i * step, 16);
  else
    for (index_t i = 0; i < count; ++i) copy_line(from + i * step, bytes, to + i * pitch);
}
// Copies the windows of `count` pixels of one row of results, from (y, x) on. A window is (kernel
// rows, kernel columns, input channels), and begins `pitch` bytes behind the one before it.
void copy_windows(const ByteConvolution& v, const int8_t* image, const int8_t* zeros, index_t y,
                  index_t x, index_t count, index_t pitch, int8_t* windows) {
  const portable::Correlation& c = v.c;
  const bool is_line = c.dilation[2] == 1 && c.groups == 1;  // the taps of a row lie together
  const index_t line = c.kernel[2] * c.inputs, step = v.in_channels();
  for (index_t ky = 0; ky < c.kernel[1]; ++ky, windows += line) {
    const index_t row = y * c.stride[1] - c.padding[1] + ky * c.dilation[1];
    const bool is_inside = row >= 0 && row < c.in[1];
    const int8_t* from = image + (is_inside ? row : 0) * c.in[2] * step;
    const index_t first_of_all = x * c.stride[2] - c.padding[2];
    // whole lines of a row
    Inside whole(first_of_all, c.stride[2], c.in[2] - c.kernel[2] + 1, count);
    if (!is_inside || !is_line) whole.right = whole.left;
    copy_lines(from + (first_of_all + whole.left * c.stride[2]) * step, c.stride[2] * step, line,
               whole.right - whole.left, pitch, windows + whole.left * pitch);
    for (index_t i = 0; i < count; ++i) {
      if (i == whole.left) i = whole.right;
      if (i >= count) break;
      const index_t first = first_of_all + i * c.stride[2];
      int8_t* to = windows + i * pitch;
      for (index_t kx = 0; kx < c.kernel[2]; ++kx, to += c.inputs) {
        const index_t column = first + kx * c.dilation[2];
        copy_line(is_inside && column >= 0 && column < c.in[2] ? from + column * step : zeros,
                  c.inputs, to);
      }
    }
  }
}
// Points to the taps of `count` pixels of one row of results, from (y, x) on: x_of[t * pitch + i].
void point_to_taps(const ByteConvolution& v, const int8_t* image, const int8_t* zeros, index_t y,
                   index_t x, index_t count, index_t pitch, const int8_t** x_of) {
  const portable::Correlation& c = v.c;
  const index_t step = c.stride[2] * v.in_channels();
  for (index_t ky = 0; ky < c.kernel[1]; ++ky) {
    const index_t row = y * c.stride[1] - c.padding[1] + ky * c.dilation[1];
    const bool is_inside = row >= 0 && row < c.in[1];
    for (index_t kx = 0; kx < c.kernel[2]; ++kx, x_of += pitch) {
      const index_t column = x * c.stride[2] - c.padding[2] + kx * c.dilation[2];
      Inside inside(column, c.stride[2], c.in[2], count);
      if (!is_inside) inside = {column, c.stride[2], 0, 0};
      for (index_t i = 0; i < inside.left; ++i) x_of[i] = zeros;
      index_t place = (row * c.in[2] + column + inside.left * c.stride[2]) * v.in_channels();
      for (index_t i = inside.left; i < inside.right; ++i, place += step) x_of[i] = image + place;
      for (index_t i = inside.right; i < count; ++i) x_of[i] = zeros;
    }
  }
}

struct Run {
  const ByteTiles& tiles;
  const Plan& plan;
  BytePanels weight;
  Rounding rounding;
  const int8_t* input;
  int8_t* out;
  const int8_t* zeros;  // a pixel of padding
  const int32_t* first;
  const float* scale;

  // Where the inputs of pixels [begin, end) lie. `image`: from the group's first channel on.
  BytePixels pixels(const int8_t* image, index_t begin, index_t end, std::byte* slot) const {
    const ByteConvolution& v = plan.v;
    const portable::Correlation& c = v.c;
    auto* x = reinterpret_cast<const int8_t**>(slot);
    const index_t pitch = plan.most_pixels;
    for (index_t at = begin; at < end;) {
      const index_t row = at / c.out[2], column = at % c.out[2],
                    count = smaller(end - at, c.out[2] - column);
      const int8_t** here = x + (at - begin);
      at += count;
      if (!plan.copies_windows) {
        point_to_taps(v, image, zeros, row, column, count, pitch, here);
        continue;
      }
      auto* windows =
          reinterpret_cast<int8_t*>(slot + plan.pointer_bytes) + (here - x) * plan.window_bytes();
      copy_windows(v, image, zeros, row, column, count, plan.window_bytes(), windows);
      for (index_t i = 0; i < count; ++i) here[i] = windows + i * plan.window_bytes();
    }
    if (plan.copies_windows) return {x, pitch, 1, BytePanels::vectors_of(v.depth())};
    return {x, pitch, c.taps(), BytePanels::vectors_of(c.inputs)};
  }

  void task(index_t index, std::byte* slot) const {
    const ByteConvolution& v = plan.v;
    const index_t cut = index % plan.cuts, chunk = index / plan.cuts % plan.chunks,
                  part = index / (plan.cuts * plan.chunks) % v.parts(),
                  batch = index / (plan.cuts * plan.chunks * v.parts());
    const index_t step = v.is_depthwise() ? 4 : tiles.panels,
                  steps = ceil_div(v.part_panels(), step),
                  panel = part_begin(steps, plan.cuts, cut) * step,
                  panels = smaller(v.part_panels(), part_begin(steps, plan.cuts, cut + 1) * step);
    const index_t begin = part_begin(plan.pixels(), plan.chunks, chunk),
                  end = part_begin(plan.pixels(), plan.chunks, chunk + 1);
    if (panel >= panels || begin >= end) return;

    const int8_t* image = input + batch * v.c.in_plane() * v.in_channels() + part * v.c.inputs;
    if (v.is_depthwise()) image += panel * BytePanels::rows;
    const BytePixels x = pixels(image, begin, end, slot);
    int8_t* to = out + (batch * plan.pixels() + begin) * v.out_channels();
    for (index_t j = panel; j < panels; j += step) {
      const index_t here = v.is_depthwise() ? panels - panel : smaller(step, panels - j),
                    channel = part * v.part_channels() + j * BytePanels::rows,
                    at = (part * v.part_panels() + j) * BytePanels::rows;
      const ByteColumns c{
          weight.panel(part * v.part_panels() + j),
          weight.vectors * BytePanels::vector_bytes,
          first + at,
          scale + at,
          smaller(here * BytePanels::rows, v.part_channels() - j * BytePanels::rows),
          rounding,
          to + channel,
          v.out_channels()};
      if (v.is_depthwise()) return tiles.depthwise(x, c, end - begin);
      tiles.multiply(x, c, here, end - begin);
    }
  }
};

// Lays out the scratch: a pixel of padding, what belongs to the channels, and the threads' parts.
Error run_plan(Context& context, const ByteTiles& of_set, const Plan& plan, Bytes input,
               Bytes weight, const ByteChannels& channels, const Rounding& rounding, int8_t* out) {
  const ByteConvolution& v = plan.v;
  const ByteTiles& tiles =
      v.is_depthwise() && of_set.for_depthwise != nullptr ? *of_set.for_depthwise : of_set;
  if (plan.chunks == 0) return Error::ok;  // there are no results
  std::byte* scratch = static_cast<std::byte*>(context.scratch);
  std::memset(scratch, channels.zero_point, static_cast<size_t>(plan.zero_bytes));
  auto* first = reinterpret_cast<int32_t*>(scratch + plan.zero_bytes);
  auto* scale = reinterpret_cast<float*>(scratch + plan.zero_bytes + plan.channel_bytes);
  std::memset(first, 0, static_cast<size_t>(2 * plan.channel_bytes));
  for (index_t part = 0; part < v.parts(); ++part)
    for (index_t i = 0; i < v.part_channels(); ++i) {
      const index_t at = part * v.part_panels() * BytePanels::rows + i,
                    channel = part * v.part_channels() + i;
      first[at] = channels.first(channel, tiles.shift), scale[at] = channels.scale(channel);
    }
  const Run run{tiles,
                plan,
                BytePanels(weight),
                rounding,
                input.data(),
                out,
                reinterpret_cast<const int8_t*>(scratch),
                first,
                scale};
  std::byte* slots = scratch + plan.zero_bytes + 2 * plan.channel_bytes;
  constexpr double least_work = 1 << 18;  // products for which another thread is worth waking
  const double work = static_cast<double>(v.c.batch * plan.pixels()) *
                      static_cast<double>(v.depth()) * static_cast<double>(v.out_channels());
  parallel_for_threads(
      work < least_work ? nullptr : context.threads,
      v.c.batch * v.parts() * plan.chunks * plan.cuts,
      [&](index_t task, int slot) { run.task(task, slots + slot * plan.slot_bytes); });
  return Error::ok;
}

void need_scratch(Context& context, const Plan& p) {
  context.need_scratch(static_cast<size_t>(p.zero_bytes + 2 * p.channel_bytes +
                                           p.slot_bytes * thread_count(context.threads)));
}

// ---- the records ----

template <const ByteTiles& tiles>
Error prepare_convolution(Context& context, Plan& plan, Bytes input, Bytes, View<const float>,
                          View<const int32_t>, Ints kernel_size, Ints stride, Ints padding,
                          Ints dilation, int64_t groups, double, int64_t, double, int64_t, Ints,
                          View<int8_t> out) {
  plan = plan_of(
      byte_convolution(input.shape(), out.shape(), kernel_size, stride, padding, dilation, groups),
      tiles, context.threads);
  need_scratch(context, plan);
  return Error::ok;
}
template <const ByteTiles& tiles>
Error convolution(Context& context, const Plan& plan, Bytes input, Bytes weight,
                  View<const float> weight_scales, View<const int32_t> offsets, Ints kernel_size,
                  Ints stride, Ints padding, Ints dilation, int64_t groups, double input_scale,
                  int64_t input_zero_point, double output_scale, int64_t output_zero_point,
                  Ints range, View<int8_t> out) {
  if (plan.is_plain)
    return plain_convolution(context, input, weight, weight_scales, offsets, kernel_size, stride,
                             padding, dilation, groups, input_scale, input_zero_point, output_scale,
                             output_zero_point, range, out);
  return run_plan(context, tiles, plan, input, weight,
                  {weight_scales, offsets, input_scale, input_zero_point, output_scale},
                  {output_zero_point, range[0], range[1]}, out.data());
}

// The rows of a matrix are the pixels of an image.
template <const ByteTiles& tiles>
Error prepare_linear(Context& context, Plan& plan, Bytes input, Bytes, View<const float> scales,
                     View<const int32_t>, double, int64_t, double, int64_t, Ints,
                     View<int8_t> out) {
  ByteConvolution v{};
  v.c.batch = v.c.groups = 1;
  v.c.inputs = input.size(-1), v.c.outputs = scales.size(0);
  for (int d = 0; d < 3; ++d)
    v.c.in[d] = v.c.out[d] = v.c.kernel[d] = v.c.stride[d] = v.c.dilation[d] = 1;
  v.c.in[2] = v.c.out[2] = v.c.outputs == 0 ? 0 : out.numel() / v.c.outputs;
  plan = plan_of(v, tiles, context.threads);
  need_scratch(context, plan);
  return Error::ok;
}
template <const ByteTiles& tiles>
Error linear(Context& context, const Plan& plan, Bytes input, Bytes weight,
             View<const float> weight_scales, View<const int32_t> offsets, double input_scale,
             int64_t input_zero_point, double output_scale, int64_t output_zero_point, Ints range,
             View<int8_t> out) {
  return run_plan(context, tiles, plan, input, weight,
                  {weight_scales, offsets, input_scale, input_zero_point, output_scale},
                  {output_zero_point, range[0], range[1]}, out.data());
}

}  // namespace

#define TAPER_BYTE_PRODUCTS(level, needs)                                                \
  TAPER_RECORD(taper_conv2d_q8, taper_conv2d_q8_i8_##level, needs, {},                   \
               prepare_convolution<byte_tiles_##level>, convolution<byte_tiles_##level>) \
  TAPER_RECORD(taper_linear_q8, taper_linear_q8_i8_##level, needs, {},                   \
               prepare_linear<byte_tiles_##level>, linear<byte_tiles_##level>)
TAPER_OF_BYTE_TILES(TAPER_BYTE_PRODUCTS)

}  // namespace taper::quantized
#endif
