#include "taper/kernels/optimized/correlation_operands.h"

#include <cstring>

namespace taper::optimized::correlation {

namespace {

constexpr index_t taps_at_once = 16;  // a line of the cache

// One phase of a channel's image (nullptr: zeros) for the positions of a band.
void fill_plane(const ImageTiles& images, const float* image, const Layout& l, index_t row_phase,
                index_t column_phase, index_t q0, float* plane) {
  const index_t rows = l.band + l.height.reach;
  const Inside h = l.height.inside(row_phase, q0, rows),
               w = l.width.inside(column_phase, l.width.begin, l.pitch);
  const bool empty = image == nullptr || w.first == w.last;
  images.pad({empty ? nullptr : image + h.from * l.width.source_extent + w.from,
              l.height.source_step * l.width.source_extent, l.width.source_step, h.first,
              empty ? h.first : h.last, rows, w.first, w.last, l.pitch, plane});
}

// All columns of the source belong to some phase, and all rows: no zeros lie between or around
// them.
bool covers_source(const Layout& l, index_t q0) {
  const index_t rows = l.band + l.height.reach;
  const auto is_whole = [](const Inside& in, index_t count) {
    return in.first == 0 && in.last == count;
  };
  for (index_t phase = 0; phase < l.height.source_phases; ++phase)
    if (!is_whole(l.height.inside(phase, q0, rows), rows)) return false;
  for (index_t phase = 0; phase < l.width.source_phases; ++phase)
    if (!is_whole(l.width.inside(phase, l.width.begin, l.pitch), l.pitch)) return false;
  return true;
}

// The planes of all column phases, which are the columns of a matrix (pitch, phases) for each row,
// as in the patches of a vision transformer.
void turn_phases(const Microkernels& kernels, const float* image, const Layout& l,
                 index_t row_phase, index_t q0, float* planes) {
  const index_t rows = l.band + l.height.reach;
  const float* from = image + l.height.inside(row_phase, q0, rows).from * l.width.source_extent +
                      l.width.inside(0, l.width.begin, l.pitch).from;
  for (index_t i = 0; i < rows; ++i)
    kernels.pack(from + i * l.height.source_step * l.width.source_extent, l.width.source_step, 1,
                 l.pitch, l.width.source_phases, planes + i * l.pitch, l.plane);
}

// A copy of a dozen elements, where calling memcpy would take longer than the copy.
inline void copy_short(const float* from, index_t count, float* to) {
  index_t i = 0;
  for (; i + 4 <= count; i += 4) std::memcpy(to + i, from + i, 4 * sizeof(float));
  for (; i < count; ++i) to[i] = from[i];
}

}  // namespace

void fill_planes(const Microkernels& kernels, const ImageTiles& images, const Correlation& c,
                 const Layout& l, Direction direction, const float* source, index_t z, index_t q0,
                 float* planes) {
  const bool forward = direction == Direction::forward;
  const index_t extent = forward ? c.in[0] : c.out[0],
                image = l.height.source_extent * l.width.source_extent;
  const bool turns = l.width.source_phases > 1 && covers_source(l, q0);
  for (index_t channel = 0; channel < l.source_channels; ++channel)
    for (index_t k = 0; k < l.depth_taps; ++k) {
      index_t at = forward ? z * c.stride[0] - c.padding[0] + k * c.dilation[0]
                           : z + c.padding[0] - k * c.dilation[0];
      bool inside = at >= 0;
      if (!forward) inside = inside && at % c.stride[0] == 0, at /= c.stride[0];
      const float* from =
          inside && at < extent ? source + (channel * extent + at) * image : nullptr;
      for (index_t row_phase = 0; row_phase < l.height.source_phases; ++row_phase) {
        if (turns && from != nullptr) turn_phases(kernels, from, l, row_phase, q0, planes);
        for (index_t column_phase = 0; column_phase < l.width.source_phases;
             ++column_phase, planes += l.plane)
          if (!turns || from == nullptr)
            fill_plane(images, from, l, row_phase, column_phase, q0, planes);
      }
    }
}

void write_offsets(const Correlation& c, const Layout& l, const Phase& p, index_t* offsets) {
  for_taps(c, l, p.row, p.column, [&](index_t tap, index_t i, index_t j) {
    const index_t phase =
        l.height.source_phase(i) * l.width.source_phases + l.width.source_phase(j);
    const index_t shift = l.height.shift(i) * l.pitch + l.width.shift(j);
    for (index_t v = 0; v < l.virtual_channels; ++v)
      offsets[v * p.taps + tap] = (v * l.phases() + phase) * l.plane + shift;
  });
}

void PanelOfWeights::pack() const {
  if (packed.data != nullptr)
    pack_packed();
  else if (direction == Direction::forward)
    pack_forward();
  else
    for (index_t tap = 0; tap < l.taps; tap += taps_at_once) pack_backward(tap);
}

// A stretch of each row at a time; meanwhile the next ones are asked for.
void PanelOfWeights::pack_forward() const {
  constexpr index_t stretch = 64, line = 16;
  const index_t depth = l.depth();
  const float* from = weight + first * depth;
  for (index_t k = 0; k < depth; k += stretch) {
    const index_t next = k + stretch;
    for (index_t r = 0; r < rows && next < depth; ++r)
      for (index_t at = 0; at < stretch; at += line)
        __builtin_prefetch(from + r * depth + next + at);
    kernels.pack(from + k, depth, 1, rows, smaller(stretch, depth - k),
                 to + place * depth + k * width, width);
  }
}

// Rows that may lie in two or three panels, into one of another width.
void PanelOfWeights::pack_packed() const {
  const index_t begin = packed_row + first;
  for (index_t r = 0, count; r < rows; r += count) {
    count = smaller(rows - r, panel_width - (begin + r) % panel_width);
    kernels.pack(packed.at(begin + r, 0), 1, panel_width, count, l.depth(),
                 to + place * l.depth() + r, width);
  }
}

// Turns the taps of each channel, which lie side by side, and hands them to their phases.
void PanelOfWeights::pack_backward(index_t first_tap) const {
  const index_t count = smaller(taps_at_once, l.taps - first_tap);
  float* rows_of[taps_at_once] = {};  // where the rows of a tap go, for one channel after the other
  index_t steps[taps_at_once] = {};
  for_phases(c, l, direction, [&](const Phase& p) {
    float* const panel =
        to + l.virtual_channels * (p.before * panels.padded_channels() + p.taps * place);
    for_taps(c, l, p.row, p.column, [&](index_t tap, index_t i, index_t j) {
      const index_t k = i * c.kernel[2] + j - first_tap;
      if (k >= 0 && k < count) rows_of[k] = panel + tap * width, steps[k] = p.taps * width;
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
      if (rows_of[k] != nullptr)  // a small result does not have every phase
        copy_short(turned + k * rows, rows, rows_of[k] + v * steps[k]);
  }
}

}  // namespace taper::optimized::correlation
