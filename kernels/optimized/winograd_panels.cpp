#include <cstring>

#include "taper/kernels/optimized/packing.h"
#include "taper/kernels/optimized/tasks.h"
#include "taper/kernels/optimized/winograd.h"

namespace taper::optimized {
namespace {

using portable::WinogradPanels, portable::winograd_places;

/// One number of each filter of a panel.
struct Lane {
  float of[panel_width];
};

/// portable::line_of_filter for a whole panel.
void line_of_filters(const Lane& a, const Lane& b, const Lane& c, Lane* __restrict to, int step) {
  for (index_t i = 0; i < panel_width; ++i) {
    const float outer = a.of[i] + c.of[i];
    to[0].of[i] = a.of[i];
    to[step].of[i] = 0.5f * (outer + b.of[i]);
    to[2 * step].of[i] = 0.5f * (outer - b.of[i]);
    to[3 * step].of[i] = c.of[i];
  }
}

}  // namespace

size_t bytes_of_winograd_panels(const TensorRef& filters) {
  const Shape& s = *filters.shape;
  if (s.rank != 4 || s.sizes[2] != 3 || s.sizes[3] != 3 || s.sizes[0] < panel_width ||
      s.sizes[1] == 0 || !s.is_dense())
    return 0;
  const WinogradPanels panels{nullptr, s.sizes[0], s.sizes[1]};
  return static_cast<size_t>(winograd_places * panels.matrix_floats()) * sizeof(float);
}

void pack_winograd_panel(const TensorRef& filters, const portable::SmallFloats& small,
                         index_t panel, float* packed) {
  constexpr index_t taps = 9, most_inputs = 16;  // whose filters are widened at a time
  const index_t channels = filters.shape->sizes[0], inputs = filters.shape->sizes[1];
  const WinogradPanels panels{packed, channels, inputs};
  const index_t first = panel * panel_width, count = smaller(panel_width, channels - first);
  float* to = packed + panel * panels.panel_floats();
  const Operand operand{filters.data, inputs * taps, 1, stored_dtype(filters), &small};
  float wide[panel_width][most_inputs * taps];
  Lane filter[taps] = {}, half[12], places[winograd_places];
  for (index_t k = 0; k < inputs; ++k, to += panel_width) {
    const index_t at = k % most_inputs;
    for (index_t i = 0; i < count; ++i) {
      const float* from = wide[i] + at * taps;
      if (!operand.is_small())
        from = operand.floats(first + i, k * taps);
      else if (at == 0)
        widen_row(operand, first + i, k * taps, smaller(most_inputs, inputs - k) * taps, wide[i]);
      for (index_t t = 0; t < taps; ++t) filter[t].of[i] = from[t];
    }
    for (int x = 0; x < 3; ++x)
      line_of_filters(filter[x], filter[3 + x], filter[6 + x], &half[x], 3);
    for (int y = 0; y < 4; ++y)
      line_of_filters(half[3 * y], half[3 * y + 1], half[3 * y + 2], &places[4 * y], 1);
    for (int p = 0; p < winograd_places; ++p)
      std::memcpy(to + p * panels.matrix_floats(), places[p].of, sizeof(Lane));
  }
}

void pack_winograd_panels(const TensorRef& filters, const portable::SmallFloats& small,
                          void* packed) {
  for (index_t p = 0; p * panel_width < filters.shape->sizes[0]; ++p)
    pack_winograd_panel(filters, small, p, static_cast<float*>(packed));
}

}  // namespace taper::optimized
