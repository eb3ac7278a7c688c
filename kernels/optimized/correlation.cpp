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

// Which elements of a plane lie inside the source, [first, last), and where the first one lies.
struct Inside {
  index_t first, last, from;
};

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
  index_t result_phase(index_t i) const {
    return result_step == 1 ? 0 : (result_origin + i) % result_step;
  }
  // Where tap k belongs.
  bool acts_on(index_t k, index_t phase) const { return forward || k * dilation % stride == phase; }
  index_t source_phase(index_t k) const { return forward ? k * dilation % stride : 0; }
  index_t shift(index_t k) const {
    return forward ? k * dilation / stride : reach - k * dilation / stride;
  }
  // The positions of a phase: result_step * q + phase - result_origin in [0, result_extent)
  index_t first(index_t phase) const {
    return larger(0, steps(result_origin - phase, result_step));
  }
  index_t last(index_t phase) const {  // one past it
    return steps(result_origin + result_extent - phase, result_step);
  }

  // ceil_div, where dividing by one would take most of a small image's time
  static index_t steps(index_t n, index_t step) { return step == 1 ? n : ceil_div(n, step); }
  // Of `count` elements of a phase's plane, for positions from `q` on.
  Inside inside(index_t phase, index_t q, index_t count) const {
    const index_t at = q * source_step + phase - source_origin;
    const index_t first = at >= 0 ? 0 : smaller(count, steps(-at, source_step));
    const index_t past = at >= source_extent ? 0 : steps(source_extent - at, source_step);
    return {first, larger(first, smaller(count, past)), at + first * source_step};
  }

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
    if (!plain) pitch -= shared_zeros();
    plane = plain ? (forward ? c.in_plane() : c.out_plane()) : (band + height.reach) * pitch;
  }
  index_t depth() const { return virtual_channels * taps; }
  index_t phases() const { return height.source_phases * width.source_phases; }
  index_t planes() const { return virtual_channels * phases() * plane; }  // floats

 private:
  // Zeros at the end of a plane's rows that may be those at the beginning of the next ones.
  index_t shared_zeros() const {
    index_t count = smaller(width.reach, Microkernels::most_lanes);  // results do not share places
    for (index_t phase = 0; phase < width.source_phases; ++phase) {
      const Inside in = width.inside(phase, width.begin, pitch);
      count = smaller(count, smaller(in.first, pitch - in.last));
    }
    return count;
  }
};

constexpr index_t most_width = Microkernels::most_vectors * Microkernels::most_lanes;  // of a tile

// Behind the planes: what the last row shares, and what the last tile reads and does not use.
constexpr index_t behind_planes = 2 * Microkernels::most_lanes;

index_t bytes_of_floats(index_t count) {
  return round_up(count * index_t{sizeof(float)}, scratch_alignment);
}

// ---- planes ----

// One phase of a channel's image (nullptr: zeros) for the positions of a band.
void fill_plane(const Microkernels& kernels, const float* image, const Layout& l, index_t row_phase,
                index_t column_phase, index_t q0, float* plane) {
  const index_t rows = l.band + l.height.reach;
  const Inside h = l.height.inside(row_phase, q0, rows),
               w = l.width.inside(column_phase, l.width.begin, l.pitch);
  const bool empty = image == nullptr || w.first == w.last;
  kernels.pad({empty ? nullptr : image + h.from * l.width.source_extent + w.from,
               l.height.source_step * l.width.source_extent, l.width.source_step, h.first,
               empty ? h.first : h.last, rows, w.first, w.last, l.pitch, plane});
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

// One phase of the result: the taps that act on it, and those of the phases before.
struct Phase {
  index_t row, column, taps, before;
};

template <class Body>
void for_phases(const Correlation& c, const Layout& l, Direction direction, const Body& body) {
  const bool forward = direction == Direction::forward;
  Phase phase{0, 0, 0, 0};
  for (index_t i = 0; i < l.height.result_phases(); ++i)
    for (index_t j = 0; j < l.width.result_phases(); ++j) {
      phase.row = l.height.result_phase(i), phase.column = l.width.result_phase(j);
      phase.taps = forward
                       ? l.taps
                       : for_taps(c, l, phase.row, phase.column, [](index_t, index_t, index_t) {});
      body(static_cast<const Phase&>(phase));
      phase.before += phase.taps;
    }
}

// offsets[(v, tap)]: where the plane of virtual channel v begins for the tap.
void write_offsets(const Correlation& c, const Layout& l, const Phase& p, index_t* offsets) {
  for_taps(c, l, p.row, p.column, [&](index_t tap, index_t i, index_t j) {
    const index_t phase =
        l.height.source_phase(i) * l.width.source_phases + l.width.source_phase(j);
    const index_t shift = l.height.shift(i) * l.pitch + l.width.shift(j);
    for (index_t v = 0; v < l.virtual_channels; ++v)
      offsets[v * p.taps + tap] = (v * l.phases() + phase) * l.plane + shift;
  });
}

// A copy of a dozen elements, where calling memcpy would take longer than the copy.
inline void copy_short(const float* from, index_t count, float* to) {
  index_t i = 0;
  for (; i + 4 <= count; i += 4) std::memcpy(to + i, from + i, 4 * sizeof(float));
  for (; i < count; ++i) to[i] = from[i];
}

// How the channels of a group's result are cut. Vectors lie along the image, and a panel is a
// tile's rows; or, where these would leave much of the vectors empty, along the channels.
struct Panels {
  index_t channels, most;
  index_t lanes = 1;  // panels are filled up to a multiple
  index_t count;

  Panels(const Microkernels& kernels, const Layout& l) : channels(l.result_channels) {
    const bool turned = is_worth_turning(kernels, l);
    if (turned) lanes = kernels.lanes;
    most = turned ? kernels.columns() : kernels.rows, count = ceil_div(channels, most);
  }
  bool turned() const { return lanes > 1; }
  index_t first(index_t panel) const {
    return turned() ? smaller(channels, panel * most) : part_begin(channels, count, panel);
  }
  index_t rows(index_t panel) const { return first(panel + 1) - first(panel); }
  index_t width(index_t panel) const { return round_up(rows(panel), lanes); }
  index_t padded_channels() const { return round_up(channels, lanes); }
  // Never less than the above.
  static index_t most_channels(const Microkernels& kernels, index_t channels) {
    return channels < kernels.lanes ? channels : round_up(channels, kernels.lanes);
  }

 private:
  static bool is_worth_turning(const Microkernels& kernels, const Layout& l) {
    constexpr index_t least_width = 4;  // fewer sums at once would wait for each other
    const index_t width = l.width.end - l.width.begin;
    if (l.width.result_step != 1 || width < least_width || l.result_channels < kernels.lanes)
      return false;
    const index_t along_image =
        round_up((l.band - 1) * l.pitch + width, kernels.lanes) * l.result_channels;
    const index_t along_channels = l.band * width * round_up(l.result_channels, kernels.lanes);
    return along_channels * 17 < along_image * 16;
  }
};

// One panel of one group's weights: (depth, width) for each phase of the result. `weight` and `to`:
// the group's first.
struct PanelOfWeights {
  const Microkernels& kernels;
  const Correlation& c;
  const Layout& l;
  Direction direction;
  const Panels& panels;
  index_t first, rows, width;
  const float* weight;
  float* to;

  // Where the phase's row of virtual channel v and tap lies.
  float* row_of(const Phase& p, index_t v, index_t tap) const {
    return to + l.virtual_channels * (p.before * panels.padded_channels() + p.taps * first) +
           (v * p.taps + tap) * width;
  }

  void pack() const {
    if (direction == Direction::forward)
      pack_forward();
    else
      for (index_t tap = 0; tap < l.taps; tap += taps_at_once) pack_backward(tap);
  }

 private:
  static constexpr index_t taps_at_once = 16;  // a line of the cache

  // A stretch of each row at a time; meanwhile the next ones are asked for.
  void pack_forward() const {
    constexpr index_t stretch = 64, line = 16;
    const index_t depth = l.depth();
    const float* from = weight + first * depth;
    for (index_t k = 0; k < depth; k += stretch) {
      const index_t next = k + stretch;
      for (index_t r = 0; r < rows && next < depth; ++r)
        for (index_t at = 0; at < stretch; at += line)
          __builtin_prefetch(from + r * depth + next + at);
      kernels.pack(from + k, depth, 1, rows, smaller(stretch, depth - k),
                   to + first * depth + k * width, width);
    }
  }

  // Turns the taps of each channel, which lie side by side, and hands them to their phases.
  void pack_backward(index_t first_tap) const {
    const index_t count = smaller(taps_at_once, l.taps - first_tap);
    Phase phase[taps_at_once] = {};
    index_t place[taps_at_once];
    for_phases(c, l, direction, [&](const Phase& p) {
      for_taps(c, l, p.row, p.column, [&](index_t tap, index_t i, index_t j) {
        const index_t k = i * c.kernel[2] + j - first_tap;
        if (k >= 0 && k < count) phase[k] = p, place[k] = tap;
      });
    });
    const index_t channel = l.depth_taps * l.taps;
    float turned[taps_at_once * most_width];
    const auto taps_of = [&](index_t v) {
      return weight + (v / l.depth_taps * l.result_channels + first) * channel +
             v % l.depth_taps * l.taps + first_tap;
    };
    for (index_t v = 0; v < l.virtual_channels; ++v) {
      for (index_t r = 0; r < rows && v + 1 < l.virtual_channels; ++r)
        __builtin_prefetch(taps_of(v + 1) + r * channel);
      kernels.pack(taps_of(v), channel, 1, rows, count, turned, rows);
      for (index_t k = 0; k < count; ++k)
        if (phase[k].taps > 0)  // a small result does not have every phase
          copy_short(turned + k * rows, rows, row_of(phase[k], v, place[k]));
    }
  }
};

// ---- one phase of the result ----

// result[r, y, x] = activation(bias[r] + sum over k of weight(r, k) base[offsets[k] + y * pitch +
// x])
struct Sweep {
  const Panels* panels;
  index_t depth;
  index_t tap_rows, tap_columns, row_step;  // as in Channel; backward, `pitch` further up
  const float* weight;                      // panels of (depth, width)
  const index_t* offsets;
  const float* base;
  index_t planes;  // floats
  index_t pitch, height, width;
  float* result;
  index_t result_channel, result_row, result_column;  // strides
  const float* bias;
  Activation activation;
};

// With rows of taps that go up, the image is seen upside down.
void run_channel(const Microkernels& kernels, const Sweep& s, Direction direction) {
  Channel c{s.depth, s.tap_rows, s.tap_columns, s.row_step, s.weight,     s.offsets, s.base,
            s.pitch, s.height,   s.width,       s.result,   s.result_row, s.bias,    s.activation};
  if (direction == Direction::backward) {
    c.from += (c.height - 1) * c.pitch, c.pitch = -c.pitch;
    c.to += (c.height - 1) * c.to_row, c.to_row = -c.to_row;
  }
  kernels.channel(c);
}

// Copies `count` columns of a tile to a row of the result.
void write_columns(const Microkernels& kernels, const Sweep& s, index_t rows, const float* tile,
                   index_t width, index_t count, float* to) {
  if (s.result_column == 1)
    return kernels.narrow(rows, tile, width, count, to, s.result_channel, false);
  for (index_t r = 0; r < rows; ++r, tile += width, to += s.result_channel)
    for (index_t i = 0; i < count; ++i) to[i * s.result_column] = tile[i];
}

// The last steps of a panel's channels, from `first` on.
void finish(const Microkernels& kernels, const Sweep& s, index_t first, index_t rows,
            index_t columns, float* sums, index_t sums_row) {
  Epilogue epilogue;
  epilogue.activation = s.activation;
  if (s.bias != nullptr) epilogue.addend = s.bias + first, epilogue.addend_row = 1;
  if (!epilogue.is_identity()) kernels.finish(rows, columns, sums, sums_row, epilogue);
}

// A panel of weights and the columns from j on.
void run_tile(const Microkernels& kernels, const Sweep& s, index_t panel, index_t j,
              index_t total) {
  alignas(64) float tile[Microkernels::most_rows * most_width + Microkernels::most_lanes];
  const index_t columns = smaller(kernels.columns(), total - j),
                vectors = ceil_div(columns, kernels.lanes), width = vectors * kernels.lanes;
  const index_t first = s.panels->first(panel), rows = s.panels->rows(panel);
  const float* weight = s.weight + first * s.depth;
  float* const result = s.result + first * s.result_channel;

  const index_t y = j / s.pitch, x = j % s.pitch;
  const bool in_one_row = s.result_column == 1 && x + width <= s.width;
  float* const sums = in_one_row ? result + y * s.result_row + x : tile;
  const index_t sums_row = in_one_row ? s.result_channel : width;
  for (index_t k = 0; k == 0 || k < s.depth; k += gemm_depth_block)
    kernels.tile[rows - 1][vectors - 1](smaller(gemm_depth_block, s.depth - k), weight + k * rows,
                                        s.base + j, s.offsets + k, sums, sums_row, k > 0);
  finish(kernels, s, first, rows, width, sums, sums_row);

  for (index_t i = 0; !in_one_row && i < columns;) {  // each stretch that lies in one row
    const index_t row = (j + i) / s.pitch, column = (j + i) % s.pitch;
    if (column < s.width)
      write_columns(kernels, s, rows, tile + i, width, smaller(columns - i, s.width - column),
                    result + row * s.result_row + column * s.result_column);
    i += s.pitch - column;
  }
}

// A panel of weights and neighbours in a row of the image, from (y, x) on. The sums of a place lie
// side by side, and are turned at the end.
void run_turned_tile(const Microkernels& kernels, const Sweep& s, index_t panel, index_t y,
                     index_t x, index_t count) {
  alignas(64) float tile[Microkernels::most_rows * most_width];
  const index_t first = s.panels->first(panel), rows = s.panels->rows(panel),
                width = s.panels->width(panel);
  const float* weight = s.weight + first * s.depth;
  for (index_t k = 0; k == 0 || k < s.depth; k += gemm_depth_block)
    kernels.turned_tile[count - 1][width / kernels.lanes - 1](
        smaller(gemm_depth_block, s.depth - k), s.base + y * s.pitch + x, s.offsets + k,
        weight + k * width, tile, width, k > 0);
  float* to = s.result + first * s.result_channel + y * s.result_row + x;
  kernels.pack(tile, width, 1, count, rows, to, s.result_channel);
  finish(kernels, s, first, rows, count, to, s.result_channel);
}

void run_turned(const Microkernels& kernels, const Sweep& s) {
  const index_t parts = ceil_div(s.width, kernels.rows);
  for (index_t panel = 0; panel < s.panels->count; ++panel)
    for (index_t i = 0; i < s.height * parts; ++i) {
      const index_t x = part_begin(s.width, parts, i % parts);
      run_turned_tile(kernels, s, panel, i / parts, x,
                      part_begin(s.width, parts, i % parts + 1) - x);
    }
}

// Runs over y and x as one row of (height - 1) * pitch + width elements; those between the image's
// rows are thrown away.
void run_sweep(const Microkernels& kernels, const Sweep& s, Direction direction) {
  if (s.height <= 0 || s.width <= 0) return;
  if (s.panels->channels == 1 && s.depth <= gemm_depth_block && s.result_column == 1)
    return run_channel(kernels, s, direction);
  if (s.panels->turned()) return run_turned(kernels, s);
  const index_t total = (s.height - 1) * s.pitch + s.width, panels = s.panels->count,
                tiles = ceil_div(total, kernels.columns());
  // What is larger is read once: the weights, or the planes.
  if (s.panels->channels * s.depth > s.planes)
    for (index_t i = 0; i < panels * tiles; ++i)
      run_tile(kernels, s, i / tiles, i % tiles * kernels.columns(), total);
  else
    for (index_t i = 0; i < panels * tiles; ++i)
      run_tile(kernels, s, i % panels, i / panels * kernels.columns(), total);
}

}  // namespace

// ---- the whole ----

CorrelationPlan plan_correlation(const Microkernels& kernels, const Correlation& c,
                                 Direction direction, int thread_count) {
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
                    behind_planes;
  const index_t channels = Panels::most_channels(kernels, l.result_channels);
  plan.shared_bytes = bytes_of_floats(c.groups * channels * l.depth()) +
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
  const Panels panels(kernels, l);
  const index_t group_weights = panels.padded_channels() * l.depth();
  float* packed = static_cast<float*>(scratch);
  const bool is_packed = forward && l.result_channels == 1;  // by nature
  const float* weights = is_packed ? weight : packed;
  index_t* offsets = reinterpret_cast<index_t*>(static_cast<std::byte*>(scratch) +
                                                bytes_of_floats(c.groups * group_weights));
  for_phases(c, l, direction, [&](const Phase& p) {
    write_offsets(c, l, p, offsets + p.before * l.virtual_channels);
  });
  for (int i = 0; i < Microkernels::rows_ahead; ++i) offsets[l.depth() + i] = 0;
  parallel_for(threads, is_packed ? 0 : c.groups * panels.count, [&](index_t i) {
    const index_t group = i / panels.count, panel = i % panels.count;
    PanelOfWeights{kernels,
                   c,
                   l,
                   direction,
                   panels,
                   panels.first(panel),
                   panels.rows(panel),
                   panels.width(panel),
                   weight + group * c.outputs * c.inputs * c.taps(),
                   packed + group * group_weights}
        .pack();
  });

  const auto planes_of = [&](index_t slot) {
    return reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + plan.shared_bytes +
                                    slot * plan.bytes_per_slot);
  };
  for (index_t slot = 0; !l.plain && slot < plan.slots; ++slot)
    std::memset(planes_of(slot) + l.planes(), 0, behind_planes * sizeof(float));

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
          fill_planes(kernels, c, l, direction, from, z, q0, planes_of(slot));
          planes = planes_of(slot);
        }
        for_phases(c, l, direction, [&](const Phase& p) {
          const index_t top = larger(q0, l.height.first(p.row)), left = l.width.first(p.column);
          Sweep s;
          s.panels = &panels, s.depth = p.taps * l.virtual_channels;
          s.row_step = c.dilation[1] == 1 && (forward || c.stride[1] == 1) ? c.stride[1] : 0;
          s.tap_rows = s.row_step > 0 ? c.kernel[1] : 1, s.tap_columns = p.taps / s.tap_rows;
          s.weight = weights + group * group_weights +
                     p.before * l.virtual_channels * panels.padded_channels();
          s.offsets = offsets + p.before * l.virtual_channels;
          s.base = planes + (top - q0) * l.pitch + (left - l.width.begin);
          s.planes = l.planes(), s.pitch = l.pitch,
          s.height = smaller(q1, l.height.last(p.row)) - top,
          s.width = l.width.last(p.column) - left;
          s.result = result + unit * l.result_channels * result_plane + z * result_image +
                     (top * l.height.result_step + p.row - l.height.result_origin) *
                         l.width.result_extent +
                     left * l.width.result_step + p.column - l.width.result_origin;
          s.result_channel = result_plane,
          s.result_row = l.height.result_step * l.width.result_extent,
          s.result_column = l.width.result_step;
          s.bias = bias == nullptr ? nullptr : bias + group * l.result_channels,
          s.activation = activation;
          run_sweep(kernels, s, direction);
        });
      });
}

}  // namespace taper::optimized
