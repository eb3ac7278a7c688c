#include "taper/exporter/nn/pool.h"

#include "taper/exporter/eager/call.h"

namespace taper::nn {

using eager::call;

Tensor MaxPool2d::forward(const Tensor& input, Location here) {
  const MaxPool2dOptions& o = options_;
  return call<ops::max_pool2d>(here, input, o.kernel_size.ints(),
                               o.stride.value_or(o.kernel_size).ints(), o.padding.ints(),
                               o.dilation.ints(), o.ceil_mode);
}

Tensor AvgPool2d::forward(const Tensor& input, Location here) {
  const AvgPool2dOptions& o = options_;
  return call<ops::avg_pool2d>(here, input, o.kernel_size.ints(),
                               o.stride.value_or(o.kernel_size).ints(), o.padding.ints(),
                               o.ceil_mode, o.count_include_pad, o.divisor_override);
}

Tensor AdaptiveAvgPool2d::forward(const Tensor& input, Location here) {
  const Dim height = height_ ? Dim(*height_) : input.size(-2, here),
            width = width_ ? Dim(*width_) : input.size(-1, here);
  return call<ops::adaptive_avg_pool2d>(here, input, Dims{height, width});
}

}  // namespace taper::nn
