// Images with channels last: (batch, height, width, channels).
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/correlation.h"

namespace taper::portable {

/// A result whose pixels may lie further apart than its channels need: beside it, in the same
/// pixels, lie channels of other results (write_into_place.h of the exporter).
using Pixels = View<float, Strides::rows>;

/// From one pixel of an image to the next one, in elements. 0: they do not all lie equally far
/// apart in their order.
inline index_t pixel_step(const Shape& s) {
  index_t step = s.sizes[3], pixels = 1;
  for (int d = 2; d >= 0; --d) {
    if (s.sizes[d] == 0) return s.sizes[3];
    if (s.sizes[d] == 1) continue;
    if (pixels == 1) step = s.strides[d];
    if (step < s.sizes[3] || s.strides[d] != step * pixels) return 0;
    pixels *= s.sizes[d];
  }
  return step;
}

/// Checks that a kernel can write such a result.
inline Error take_pixel_step(Context& context, const Pixels& out, index_t& step) {
  step = pixel_step(out.shape());
  if (step != 0 || out.size(3) == 0) return Error::ok;
  return context.fail(Error::invalid_program,
                      TAPER_TEXT("the pixels of the result do not lie equally far apart"));
}

/// The same image with its channels before height and width; only the sizes count.
inline Shape channels_first(const Shape& s) {
  Shape turned = s;
  turned.sizes[1] = s.sizes[3], turned.sizes[2] = s.sizes[1], turned.sizes[3] = s.sizes[2];
  return turned;
}

/// The geometry of a convolution of two spatial dimensions over such images.
inline Correlation image_correlation(const Shape& input, const Shape& output, const Shape& weight,
                                     Span<const int64_t> stride, Span<const int64_t> padding,
                                     Span<const int64_t> dilation, int64_t groups) {
  return correlation_of(channels_first(input), channels_first(output), weight, stride, padding,
                        dilation, groups);
}

}  // namespace taper::portable
