// How a correlation is brought to products whose taps are shifts, and how its result is cut.
#pragma once
#include "taper/kernels/optimized/correlation.h"
#include "taper/kernels/optimized/tasks.h"

namespace taper::optimized::correlation {

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

// How the channels of a group's result are cut. Vectors lie along the image, and a panel is a
// tile's rows; or, where these would leave much of the vectors empty, along the channels.
struct Panels {
  index_t channels, most;
  index_t lanes = 1;  // panels are filled up to a multiple
  index_t count;

  // `packed`: the weights lie as panels along the channels.
  Panels(const Microkernels& kernels, const Layout& l, bool packed) : channels(l.result_channels) {
    const bool turned = is_worth_turning(kernels, l, packed);
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
  static bool is_worth_turning(const Microkernels& kernels, const Layout& l, bool packed) {
    constexpr index_t least_width = 4;  // fewer sums at once would wait for each other
    // What packing a weight and turning a sum cost, in multiply-adds.
    constexpr index_t pack_cost = 16, turn_cost = 12;
    const index_t width = l.width.end - l.width.begin;
    if (l.width.result_step != 1 || width < least_width || l.result_channels < kernels.lanes)
      return false;
    const index_t along_image =
        round_up((l.band - 1) * l.pitch + width, kernels.lanes) * l.result_channels;
    const index_t along_channels = l.band * width * round_up(l.result_channels, kernels.lanes);
    if (packed)
      return along_channels * (l.depth() + turn_cost) <
             (along_image + pack_cost * l.result_channels) * l.depth();
    return along_channels * 17 < along_image * 16;
  }
};

}  // namespace taper::optimized::correlation
