#include "taper/exporter/passes/transposed_weights.h"

#include <algorithm>

namespace taper::passes {

namespace {
int64_t floor_of(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }
}  // namespace

TransposedAxis TransposedAxis::of(int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                                  int64_t output_padding) {
  TransposedAxis a;
  a.stride = stride, a.original_kernel = kernel, a.original_dilation = dilation;
  // with phases, the kernel is spread out, and zeros lie between its elements
  const int64_t reach = dilation * (kernel - 1);
  a.dilation = stride == 1 ? dilation : 1;
  a.kernel = stride == 1 ? kernel : reach / stride + 1;
  // Result i is number (i + padding) / stride of its phase. Tap t reads input n - padding + t *
  // dilation for the phase's n-th result, and the last tap reads the input of its own number.
  const int64_t before = a.dilation * (a.kernel - 1), first = padding / stride;
  a.padding =
      std::max({int64_t{0}, before - first, floor_of(reach - padding + output_padding, stride)});
  a.start = stride * (first + a.padding - before) + padding % stride;
  return a;
}

int64_t TransposedAxis::element(int64_t phase, int64_t t) const {
  const int64_t back = kernel - 1 - t;
  if (stride == 1) return back;
  const int64_t place = stride * back + phase;
  return place % original_dilation == 0 && place / original_dilation < original_kernel
             ? place / original_dilation
             : -1;
}

QuantizedWeight weight_of_phases(const QuantizedWeight& weight,
                                 const std::array<TransposedAxis, 2>& axes, int64_t groups,
                                 int64_t first, int64_t count) {
  const auto& [y, x] = axes;
  const int64_t inputs = weight.sizes[0] / groups, outputs = weight.sizes[1],
                rows = y.original_kernel, columns = x.original_kernel;
  QuantizedWeight of;
  of.path = weight.path;
  of.sizes = {count * groups * outputs, inputs, y.kernel, x.kernel};
  for (int64_t phase = first; phase < first + count; ++phase)
    for (int64_t channel = 0; channel < groups * outputs; ++channel) {
      const int64_t group = channel / outputs, o = channel % outputs;
      of.scales.push_back(weight.scales[static_cast<size_t>(o)]);
      for (int64_t ty = 0; ty < y.kernel; ++ty)
        for (int64_t tx = 0; tx < x.kernel; ++tx) {
          const int64_t row = y.element(phase / x.stride, ty),
                        column = x.element(phase % x.stride, tx);
          for (int64_t i = 0; i < inputs; ++i) {
            const int64_t from =
                (((group * inputs + i) * outputs + o) * rows + row) * columns + column;
            of.integers.push_back(
                row < 0 || column < 0 ? int8_t{0} : weight.integers[static_cast<size_t>(from)]);
          }
        }
    }
  return of;
}

}  // namespace taper::passes
