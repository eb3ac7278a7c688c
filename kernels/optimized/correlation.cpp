#include "taper/kernels/optimized/correlation.h"

#include <cstring>

#include "taper/kernels/optimized/gemm.h"
#include "taper/kernels/optimized/tasks.h"

namespace taper::optimized {

Correlation correlation_of(const Shape& x, const Shape& y, const Shape& weight,
                           Span<const int64_t> stride, Span<const int64_t> padding,
                           Span<const int64_t> dilation, int64_t groups) {
  Correlation c;
  c.batch = x.sizes[0], c.groups = static_cast<index_t>(groups);
  c.inputs = weight.sizes[1], c.outputs = weight.sizes[0] / c.groups;
  const int missing = 3 - (x.rank - 2);
  const auto each = [](Span<const int64_t> list, int i) {
    return static_cast<index_t>(list[list.size() == 1 ? 0 : i]);
  };
  for (int d = 0; d < 3; ++d) {
    const int i = d - missing;
    c.in[d] = c.out[d] = c.kernel[d] = c.stride[d] = c.dilation[d] = 1, c.padding[d] = 0;
    if (i < 0) continue;
    c.in[d] = x.sizes[i + 2], c.out[d] = y.sizes[i + 2], c.kernel[d] = weight.sizes[i + 2];
    c.stride[d] = each(stride, i), c.padding[d] = each(padding, i),
    c.dilation[d] = each(dilation, i);
  }
  return c;
}

namespace {

// One image dimension, brought to a product whose taps are shifts. A position q of a band that
// begins at q0 computes the result at
//   q * result_step + result_phase - result_origin
// from the elements q - q0 + shift of planes, whose element i of phase f is the source's element
//   (q0 + i) * source_step + f - source_origin         (zero outside the source)
// Forward, a stride cuts the source into phases; backward, the result.
struct Axis {
  index_t source_extent, source_step = 1, source_phases = 1, source_origin;
  index_t result_extent, result_step = 1, result_origin = 0;
  index_t begin = 0, end;  // the positions q
  index_t reach;           // the largest shift
  index_t stride, dilation;
  bool forward;

  Axis(const Correlation& c, int d, bool is_forward)
      : stride(c.stride[d]), dilation(c.dilation[d]), forward(is_forward) {
    const index_t span = (c.kernel[d] - 1) * dilation;
    reach = span / stride;
    if (forward) {
      source_extent = c.in[d], source_step = stride, source_phases = smaller(stride, span + 1),
      source_origin = c.padding[d];
      result_extent = end = c.out[d];
    } else {
      source_extent = c.out[d], source_origin = reach;
      result_extent = c.in[d], result_step = stride, result_origin = c.padding[d];
      begin = result_origin / stride,
      end = result_extent == 0 ? begin : (result_origin + result_extent - 1) / stride + 1;
    }
  }
  // The result's phases are (result_origin + i) % result_step for i in [0, result_phases()).
  index_t result_phases() const { return smaller(result_step, result_extent); }
  index_t result_phase(index_t i) const { return (result_origin + i) % result_step; }
  // Where tap k belongs.
  bool acts_on(index_t k, index_t phase) const { return forward || k * dilation % stride == phase; }
  index_t source_phase(index_t k) const { return forward ? k * dilation % stride : 0; }
  index_t shift(index_t k) const {
    return forward ? k * dilation / stride : reach - k * dilation / stride;
  }
  // The positions of a phase: result_step * q + phase - result_origin in [0, result_extent)
  index_t first(index_t phase) const {
    return larger(0, ceil_div(result_origin - phase, result_step));
  }
  index_t last(index_t phase) const {
    return (result_origin + result_extent - 1 - phase + result_step) / result_step;
  }  // one past it

  // The planes would be the source itself, whatever the extents.
  bool is_plain() const { return stride == 1 && result_origin == 0 && source_origin == 0; }
};

// The source as a run sees it: channels of one group, for one depth of the result; and its weights.
struct Layout {
  Axis height, width;
  index_t source_channels, result_channels, depth_taps;
  index_t virtual_channels;  // (channel, depth tap): each has planes of its own
  index_t taps;              // of one plane
  bool plain;                // planes are the source's own
  index_t pitch, plane, band;

  Layout(const Correlation& c, Direction direction, index_t band_)
      : height(c, 1, direction == Direction::forward),
        width(c, 2, direction == Direction::forward),
        band(band_) {
    const bool forward = direction == Direction::forward;
    source_channels = forward ? c.inputs : c.outputs,
    result_channels = forward ? c.outputs : c.inputs;
    depth_taps = c.kernel[0], virtual_channels = source_channels * depth_taps,
    taps = c.kernel[1] * c.kernel[2];
    plain = depth_taps == 1 && c.stride[0] == 1 && c.padding[0] == 0 && height.is_plain() &&
            width.is_plain();
    pitch = plain ? width.source_extent : width.end - width.begin + width.reach;
    plane = plain ? (forward ? c.in_plane() : c.out_plane()) : (band + height.reach) * pitch;
  }
  index_t depth() const { return virtual_channels * taps; }
  index_t phases() const { return height.source_phases * width.source_phases; }
};

index_t bytes_of_floats(index_t count) {
  return round_up(count * index_t{sizeof(float)}, scratch_alignment);
}

// ---- planes ----

// A copy of some dozen elements, where calling memcpy would take longer than the copy.
inline void copy_short(const float* from, index_t count, float* to) {
  index_t i = 0;
  for (; i + 8 <= count; i += 8) std::memcpy(to + i, from + i, 8 * sizeof(float));
  for (; i < count; ++i) to[i] = from[i];
}

// One phase of a channel's image (nullptr: zeros) for the positions of a band.
void fill_plane(const Microkernels& kernels, const float* image, const Layout& l, index_t row_phase,
                index_t column_phase, index_t q0, float* plane) {
  const Axis &h = l.height, &w = l.width;
  const index_t at = w.begin * w.source_step + column_phase -
                     w.source_origin;  // column of the plane's first element
  // elements before the first inside, and from the first behind
  const index_t first = at >= 0 ? 0 : smaller(l.pitch, ceil_div(-at, w.source_step));
  const index_t last = larger(
      first,
      smaller(l.pitch, w.source_extent <= at ? 0 : ceil_div(w.source_extent - at, w.source_step)));
  for (index_t i = 0; i < l.band + h.reach; ++i, plane += l.pitch) {
    const index_t row = (q0 + i) * h.source_step + row_phase - h.source_origin;
    if (image == nullptr || row < 0 || row >= h.source_extent) {
      std::memset(plane, 0, static_cast<size_t>(l.pitch) * sizeof(float));
      continue;
    }
    for (index_t x = 0; x < first; ++x) plane[x] = 0;
    const float* from = image + row * w.source_extent + at;
    if (w.source_step == 1)
      copy_short(from + first, last - first, plane + first);
    else if (w.source_step == 2)
      kernels.copy_every_second(from + 2 * first, last - first, plane + first);
    else
      for (index_t x = first; x < last; ++x) plane[x] = from[x * w.source_step];
    for (index_t x = last; x < l.pitch; ++x) plane[x] = 0;
  }
}

// All planes of a group's channels for the result's depth `z`. `source`: the group's first channel.
void fill_planes(const Microkernels& kernels, const Correlation& c, const Layout& l,
                 Direction direction, const float* source, index_t z, index_t q0, float* planes) {
  const bool forward = direction == Direction::forward;
  const index_t extent = forward ? c.in[0] : c.out[0],
                image = l.height.source_extent * l.width.source_extent;
  for (index_t channel = 0; channel < l.source_channels; ++channel)
    for (index_t k = 0; k < l.depth_taps; ++k) {
      index_t at = forward ? z * c.stride[0] - c.padding[0] + k * c.dilation[0]
                           : z + c.padding[0] - k * c.dilation[0];
      bool inside = at >= 0;
      if (!forward) inside = inside && at % c.stride[0] == 0, at /= c.stride[0];
      const float* from =
          inside && at < extent ? source + (channel * extent + at) * image : nullptr;
      for (index_t row_phase = 0; row_phase < l.height.source_phases; ++row_phase)
        for (index_t column_phase = 0; column_phase < l.width.source_phases;
             ++column_phase, planes += l.plane)
          fill_plane(kernels, from, l, row_phase, column_phase, q0, planes);
    }
  for (int i = 0; i < Microkernels::most_lanes; ++i)
    planes[i] = 0;  // read, not used, by the last tile
}

// ---- weights and offsets, shared by all tasks ----

// Calls body(tap, row of the kernel, column of the kernel) for the taps that act on a phase of the
// result; returns their number.
template <class Body>
index_t for_taps(const Correlation& c, const Layout& l, index_t row_phase, index_t column_phase,
                 const Body& body) {
  index_t tap = 0;
  for (index_t i = 0; i < c.kernel[1]; ++i)
    for (index_t j = 0; j < c.kernel[2]; ++j)
      if (l.height.acts_on(i, row_phase) && l.width.acts_on(j, column_phase)) body(tap++, i, j);
  return tap;
}

// offsets[(v, tap)]: where the plane of virtual channel v begins for the tap.
void write_offsets(const Correlation& c, const Layout& l, index_t row_phase, index_t column_phase,
                   index_t taps, index_t* offsets) {
  for_taps(c, l, row_phase, column_phase, [&](index_t tap, index_t i, index_t j) {
    const index_t phase =
        l.height.source_phase(i) * l.width.source_phases + l.width.source_phase(j);
    const index_t shift = l.height.shift(i) * l.pitch + l.width.shift(j);
    for (index_t v = 0; v < l.virtual_channels; ++v)
      offsets[v * taps + tap] = (v * l.phases() + phase) * l.plane + shift;
  });
}

// One panel, (depth, rows), of one group's weights for a phase of the result. `weight`: the group's
// first.
void pack_weights(const Microkernels& kernels, const Correlation& c, const Layout& l,
                  Direction direction, index_t row_phase, index_t column_phase, index_t taps,
                  index_t first, index_t rows, const float* weight, float* to) {
  const bool forward = direction == Direction::forward;
  const index_t row_stride = forward ? l.depth() : l.depth_taps * l.taps;
  const float* from = weight + first * row_stride;
  if (forward) return kernels.pack(from, row_stride, 1, rows, l.depth(), to, rows);
  for (index_t v = 0; v < l.virtual_channels; ++v, to += taps * rows) {
    const float* plane =
        from + v / l.depth_taps * l.result_channels * row_stride + v % l.depth_taps * l.taps;
    if (taps == l.taps)
      kernels.pack(plane, row_stride, 1, rows, taps, to, rows);
    else
      for_taps(c, l, row_phase, column_phase, [&](index_t tap, index_t i, index_t j) {
        kernels.pack(plane + i * c.kernel[2] + j, row_stride, 1, rows, 1, to + tap * rows, rows);
      });
  }
}

// ---- one phase of the result ----

// result[r, y, x] = activation(bias[r] + sum over k of weight(r, k) base[offsets[k] + y * pitch +
// x])
struct Sweep {
  index_t rows, depth;
  const float* weight;  // panels of (depth, rows)
  const index_t* offsets;
  const float* base;
  index_t pitch, height, width;
  float* result;
  index_t result_channel, result_row, result_column;  // strides
  const float* bias;
  Activation activation;
};

// Runs over y and x as one row of (height - 1) * pitch + width elements; those between the image's
// rows are thrown away.
void run_sweep(const Microkernels& kernels, const Sweep& s) {
  if (s.height <= 0 || s.width <= 0) return;
  if (s.rows == 1 && s.depth <= gemm_depth_block && s.result_column == 1)
    return kernels.channel({s.depth, s.weight, s.offsets, s.base, s.pitch, s.height, s.width,
                            s.result, s.result_row, s.bias, s.activation});
  alignas(64) float
      tile[Microkernels::most_rows * Microkernels::most_vectors * Microkernels::most_lanes];
  const index_t total = (s.height - 1) * s.pitch + s.width, panels = ceil_div(s.rows, kernels.rows);
  for (index_t j = 0; j < total; j += kernels.columns()) {
    const index_t columns = smaller(kernels.columns(), total - j),
                  vectors = ceil_div(columns, kernels.lanes), width = vectors * kernels.lanes;
    for (index_t p = 0; p < panels; ++p) {
      const index_t first = part_begin(s.rows, panels, p),
                    rows = part_begin(s.rows, panels, p + 1) - first;
      const float* weight = s.weight + first * s.depth;
      for (index_t k = 0; k == 0 || k < s.depth; k += gemm_depth_block)
        kernels.tile[rows - 1][vectors - 1](smaller(gemm_depth_block, s.depth - k),
                                            weight + k * rows, s.base + j, s.offsets + k, tile,
                                            width, k > 0);
      Epilogue epilogue;
      epilogue.activation = s.activation;
      if (s.bias != nullptr) epilogue.addend = s.bias + first, epilogue.addend_row = 1;
      if (!epilogue.is_identity()) kernels.finish(rows, width, tile, width, epilogue);

      for (index_t i = 0; i < columns;) {  // each stretch that lies in one row of the image
        const index_t y = (j + i) / s.pitch, x = (j + i) % s.pitch;
        const index_t count = smaller(columns - i, s.width - x);
        float* to = s.result + first * s.result_channel + y * s.result_row + x * s.result_column;
        for (index_t r = 0; r < rows; ++r, to += s.result_channel) {
          const float* from = tile + r * width + i;
          if (s.result_column == 1)
            copy_short(from, count, to);
          else
            for (index_t e = 0; e < count; ++e) to[e * s.result_column] = from[e];
        }
        i += s.pitch - x;
      }
    }
  }
}

}  // namespace

// ---- the whole ----

CorrelationPlan plan_correlation(const Microkernels&, const Correlation& c, Direction direction,
                                 int thread_count) {
  constexpr index_t planes_floats = 64 * 1024;  // stay in the second-level cache
  constexpr index_t least_work = 1 << 18;       // multiply-adds worth a task

  const Layout l(c, direction, 1);
  const index_t positions = larger(1, l.height.end - l.height.begin), reach = l.height.reach;
  const index_t row =
      larger(1, l.virtual_channels * l.phases() * l.pitch);  // floats of one row of all planes
  CorrelationPlan plan;
  plan.band = l.plain ? positions : larger(1, smaller(positions, planes_floats / row - reach));

  const index_t result_depth = direction == Direction::forward ? c.out[0] : c.in[0],
                images = c.batch * c.groups * result_depth;
  const index_t row_work = l.result_channels * l.depth() * (l.width.end - l.width.begin);
  while (thread_count > 1 && images * ceil_div(positions, plan.band) < 4 * thread_count &&
         plan.band > 1 && plan.band * row_work >= 2 * least_work)
    plan.band = ceil_div(plan.band, 2);
  plan.band = ceil_div(positions, ceil_div(positions, plan.band));

  // What a larger shape would not need less of.
  const index_t planes =
      l.plain ? 0
              : smaller((positions + reach) * row, larger(planes_floats, (1 + reach) * row)) +
                    Microkernels::most_lanes;
  plan.shared_bytes = bytes_of_floats(c.groups * l.result_channels * l.depth()) +
                      round_up((l.depth() + Microkernels::rows_ahead) * index_t{sizeof(index_t)},
                               scratch_alignment);
  plan.slots = thread_count;
  plan.bytes_per_slot = bytes_of_floats(planes);
  return plan;
}

void run_correlation(const Microkernels& kernels, const CorrelationPlan& plan, const Correlation& c,
                     Direction direction, const float* source, const float* weight,
                     const float* bias, Activation activation, float* result, void* scratch,
                     const Threads* threads) {
  const bool forward = direction == Direction::forward;
  const Layout l(c, direction, plan.band);
  const index_t group_weights = l.result_channels * l.depth();
  float* weights = static_cast<float*>(scratch);
  index_t* offsets = reinterpret_cast<index_t*>(static_cast<std::byte*>(scratch) +
                                                bytes_of_floats(c.groups * group_weights));
  const index_t row_phases = l.height.result_phases(), column_phases = l.width.result_phases();

  // Calls body(row phase, column phase, taps, taps of the phases before) for each phase of the
  // result.
  const auto for_phases = [&](const auto& body) {
    index_t before = 0;
    for (index_t i = 0; i < row_phases; ++i)
      for (index_t j = 0; j < column_phases; ++j) {
        const index_t row_phase = l.height.result_phase(i), column_phase = l.width.result_phase(j);
        const index_t taps =
            forward ? l.taps
                    : for_taps(c, l, row_phase, column_phase, [](index_t, index_t, index_t) {});
        body(row_phase, column_phase, taps, before);
        before += taps;
      }
  };
  for_phases([&](index_t row_phase, index_t column_phase, index_t taps, index_t before) {
    write_offsets(c, l, row_phase, column_phase, taps, offsets + before * l.virtual_channels);
  });
  for (int i = 0; i < Microkernels::rows_ahead; ++i) offsets[l.depth() + i] = 0;
  const index_t panels = ceil_div(l.result_channels, kernels.rows);
  parallel_for(threads, c.groups * panels, [&](index_t i) {
    const index_t group = i / panels, first = part_begin(l.result_channels, panels, i % panels);
    const index_t rows = part_begin(l.result_channels, panels, i % panels + 1) - first;
    for_phases([&](index_t row_phase, index_t column_phase, index_t taps, index_t before) {
      pack_weights(kernels, c, l, direction, row_phase, column_phase, taps, first, rows,
                   weight + group * c.outputs * c.inputs * c.taps(),
                   weights + group * group_weights +
                       l.virtual_channels * (before * l.result_channels + first * taps));
    });
  });

  const index_t bands = ceil_div(l.height.end - l.height.begin, l.band);
  const index_t result_depth = forward ? c.out[0] : c.in[0],
                source_plane = forward ? c.in_plane() : c.out_plane();
  const index_t result_image = l.height.result_extent * l.width.result_extent,
                result_plane = result_depth * result_image;
  parallel_for_slots(
      threads, c.batch * c.groups * result_depth * bands, plan.slots,
      [&](index_t task, index_t slot) {
        const index_t q0 = l.height.begin + task % bands * l.band, z = task / bands % result_depth,
                      unit = task / (bands * result_depth);
        const index_t q1 = smaller(l.height.end, q0 + l.band),
                      group = unit % c.groups;  // unit: (image, group)
        const float* from = source + unit * l.source_channels * source_plane;
        const float* planes = from + z * l.height.source_extent * l.width.source_extent +
                              q0 * l.pitch;  // if they are plain
        if (!l.plain) {
          float* copy = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) +
                                                 plan.shared_bytes + slot * plan.bytes_per_slot);
          fill_planes(kernels, c, l, direction, from, z, q0, copy);
          planes = copy;
        }
        for_phases([&](index_t row_phase, index_t column_phase, index_t taps, index_t before) {
          const index_t top = larger(q0, l.height.first(row_phase)),
                        left = l.width.first(column_phase);
          Sweep s;
          s.rows = l.result_channels, s.depth = taps * l.virtual_channels;
          s.weight =
              weights + group * group_weights + before * l.virtual_channels * l.result_channels;
          s.offsets = offsets + before * l.virtual_channels;
          s.base = planes + (top - q0) * l.pitch + (left - l.width.begin);
          s.pitch = l.pitch, s.height = smaller(q1, l.height.last(row_phase)) - top,
          s.width = l.width.last(column_phase) - left;
          s.result = result + unit * l.result_channels * result_plane + z * result_image +
                     (top * l.height.result_step + row_phase - l.height.result_origin) *
                         l.width.result_extent +
                     left * l.width.result_step + column_phase - l.width.result_origin;
          s.result_channel = result_plane,
          s.result_row = l.height.result_step * l.width.result_extent,
          s.result_column = l.width.result_step;
          s.bias = bias == nullptr ? nullptr : bias + group * l.result_channels,
          s.activation = activation;
          run_sweep(kernels, s);
        });
      });
}

}  // namespace taper::optimized
