// The geometry of taper::conv2d_q8, which its kernels share.
#pragma once
#include "taper/kernels/portable/correlation.h"
#include "taper/kernels/quantized/byte_panels.h"
#include "taper/kernels/shapes/integer.h"

namespace taper::quantized {

struct ByteConvolution {
  portable::Correlation c;

  /// Each channel has a filter of its own: a panel holds sixteen of them.
  bool is_depthwise() const { return c.inputs == 1 && c.outputs == 1; }
  index_t depth() const { return c.inputs * c.taps(); }
  index_t in_channels() const { return c.groups * c.inputs; }
  index_t out_channels() const { return c.groups * c.outputs; }
  /// The channels that share panels, and how many such parts there are.
  index_t part_channels() const { return is_depthwise() ? c.groups : c.outputs; }
  index_t parts() const { return is_depthwise() ? 1 : c.groups; }
  index_t part_panels() const { return BytePanels::panels_of(part_channels()); }

  /// The input at tap (ky, kx) of the result at (y, x), from the image's first element on. -1: it
  /// lies in the padding.
  index_t place(index_t y, index_t x, index_t ky, index_t kx) const {
    const index_t row = y * c.stride[1] - c.padding[1] + ky * c.dilation[1],
                  column = x * c.stride[2] - c.padding[2] + kx * c.dilation[2];
    if (row < 0 || row >= c.in[1] || column < 0 || column >= c.in[2]) return -1;
    return (row * c.in[2] + column) * in_channels();
  }
};

inline ByteConvolution byte_convolution(const Shape& input, const Shape& output,
                                        Span<const int64_t> kernel_size, Span<const int64_t> stride,
                                        Span<const int64_t> padding, Span<const int64_t> dilation,
                                        int64_t groups) {
  ByteConvolution v{};
  v.c.batch = input.sizes[0], v.c.groups = static_cast<index_t>(groups);
  v.c.inputs = input.sizes[3] / v.c.groups, v.c.outputs = output.sizes[3] / v.c.groups;
  for (int d = 0; d < 3; ++d) {
    const int i = d - 1;
    const auto of = [&](Span<const int64_t> list, index_t first) {
      return i < 0 ? first : static_cast<index_t>(list[i]);
    };
    v.c.in[d] = i < 0 ? 1 : input.sizes[d], v.c.out[d] = i < 0 ? 1 : output.sizes[d];
    v.c.kernel[d] = of(kernel_size, 1), v.c.stride[d] = of(stride, 1);
    v.c.padding[d] = of(padding, 0), v.c.dilation[d] = of(dilation, 1);
  }
  return v;
}

/// taper::conv2d_q8 by the plain kernel, for what the others do not take.
Error plain_convolution(Context& context, View<const int8_t> input, View<const int8_t> weight,
                        View<const float> weight_scales, View<const int32_t> offsets,
                        Span<const int64_t> kernel_size, Span<const int64_t> stride,
                        Span<const int64_t> padding, Span<const int64_t> dilation, int64_t groups,
                        double input_scale, int64_t input_zero_point, double output_scale,
                        int64_t output_zero_point, Span<const int64_t> range, View<int8_t> out);

}  // namespace taper::quantized
