// Images with channels last: (batch, height, width, channels).
#pragma once
#include "taper/kernels/portable/correlation.h"

namespace taper::portable {

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
