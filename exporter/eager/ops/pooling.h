// Pooling over the last dimensions of (channels, …) or (batch, channels, …). Sizes are in elements:
// one number for all dimensions, or one for each. An empty stride means kernel_size.
//
//   result extent = (extent + 2 padding - dilation (kernel - 1) - 1) / stride + 1
//
// With `ceil_mode` this division rounds up. Then the last window may reach past the end, if it
// begins inside the input or in the padding before the input.
//
// The result has the dtype of self; indices are i64. Errors: another rank, a window larger than the
// padded extent, padding of more than half a window.
#pragma once
#include <optional>
#include <tuple>

#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/ops/each.h"

namespace taper::eager {

/// The largest element of each window over (…, x), or NaN if the window has one. Positions in the
/// padding do not count.
inline Tensor max_pool1d(const Tensor& self, const Each& kernel_size, const Each& stride = {},
                         const Each& padding = 0, const Each& dilation = 1, bool ceil_mode = false,
                         Location here = Location::current()) {
  return call<ops::max_pool1d>(here, self, kernel_size.ints(), stride.ints(), padding.ints(),
                               dilation.ints(), ceil_mode);
}
/// The same over (…, height, width).
inline Tensor max_pool2d(const Tensor& self, const Each& kernel_size, const Each& stride = {},
                         const Each& padding = 0, const Each& dilation = 1, bool ceil_mode = false,
                         Location here = Location::current()) {
  return call<ops::max_pool2d>(here, self, kernel_size.ints(), stride.ints(), padding.ints(),
                               dilation.ints(), ceil_mode);
}
/// The same over (…, depth, height, width).
inline Tensor max_pool3d(const Tensor& self, const Each& kernel_size, const Each& stride = {},
                         const Each& padding = 0, const Each& dilation = 1, bool ceil_mode = false,
                         Location here = Location::current()) {
  return call<ops::max_pool3d>(here, self, kernel_size.ints(), stride.ints(), padding.ints(),
                               dilation.ints(), ceil_mode);
}
/// `max_pool2d`, and the position of each maximum in its plane, counted row by row. Among equal
/// elements the first one counts.
inline std::tuple<Tensor, Tensor> max_pool2d_with_indices(
    const Tensor& self, const Each& kernel_size, const Each& stride = {}, const Each& padding = 0,
    const Each& dilation = 1, bool ceil_mode = false, Location here = Location::current()) {
  return call<ops::max_pool2d_with_indices>(here, self, kernel_size.ints(), stride.ints(),
                                            padding.ints(), dilation.ints(), ceil_mode);
}
/// `max_pool3d`, and the position of each maximum in its volume, likewise.
inline std::tuple<Tensor, Tensor> max_pool3d_with_indices(
    const Tensor& self, const Each& kernel_size, const Each& stride = {}, const Each& padding = 0,
    const Each& dilation = 1, bool ceil_mode = false, Location here = Location::current()) {
  return call<ops::max_pool3d_with_indices>(here, self, kernel_size.ints(), stride.ints(),
                                            padding.ints(), dilation.ints(), ceil_mode);
}

/// The mean of each window over (…, x). The zeros of the padding count unless `count_include_pad`
/// is false.
inline Tensor avg_pool1d(const Tensor& self, const Each& kernel_size, const Each& stride = {},
                         const Each& padding = 0, bool ceil_mode = false,
                         bool count_include_pad = true, Location here = Location::current()) {
  return call<ops::avg_pool1d>(here, self, kernel_size.ints(), stride.ints(), padding.ints(),
                               ceil_mode, count_include_pad);
}
/// The same over (…, height, width). If `divisor_override` is given, sums are divided by it; it is
/// not 0.
inline Tensor avg_pool2d(const Tensor& self, const Each& kernel_size, const Each& stride = {},
                         const Each& padding = 0, bool ceil_mode = false,
                         bool count_include_pad = true,
                         std::optional<int64_t> divisor_override = {},
                         Location here = Location::current()) {
  return call<ops::avg_pool2d>(here, self, kernel_size.ints(), stride.ints(), padding.ints(),
                               ceil_mode, count_include_pad, divisor_override);
}
/// The same over (…, depth, height, width).
inline Tensor avg_pool3d(const Tensor& self, const Each& kernel_size, const Each& stride = {},
                         const Each& padding = 0, bool ceil_mode = false,
                         bool count_include_pad = true,
                         std::optional<int64_t> divisor_override = {},
                         Location here = Location::current()) {
  return call<ops::avg_pool3d>(here, self, kernel_size.ints(), stride.ints(), padding.ints(),
                               ceil_mode, count_include_pad, divisor_override);
}

/// The means of windows that divide the extent of (…, x) into `output_size` parts. Part i of n is
/// [floor(i extent / n), ceil((i + 1) extent / n)).
inline Tensor adaptive_avg_pool1d(const Tensor& self, int64_t output_size,
                                  Location here = Location::current()) {
  return call<ops::adaptive_avg_pool1d>(here, self, Ints{output_size});
}
/// The same over (…, height, width), with two sizes.
inline Tensor adaptive_avg_pool2d(const Tensor& self, const Dims& output_size,
                                  Location here = Location::current()) {
  return call<ops::adaptive_avg_pool2d>(here, self, output_size);
}
/// The same over (…, depth, height, width), with three sizes.
inline Tensor adaptive_avg_pool3d(const Tensor& self, const Dims& output_size,
                                  Location here = Location::current()) {
  return call<ops::adaptive_avg_pool3d>(here, self, output_size);
}
/// The largest elements of the same windows, and the position of each in its line.
inline std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self, int64_t output_size,
                                                      Location here = Location::current()) {
  return call<ops::adaptive_max_pool1d>(here, self, Ints{output_size});
}
/// The same over (…, height, width), with two sizes.
inline std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& self, const Ints& output_size,
                                                      Location here = Location::current()) {
  return call<ops::adaptive_max_pool2d>(here, self, output_size);
}
/// The same over (…, depth, height, width), with three sizes.
inline std::tuple<Tensor, Tensor> adaptive_max_pool3d(const Tensor& self, const Ints& output_size,
                                                      Location here = Location::current()) {
  return call<ops::adaptive_max_pool3d>(here, self, output_size);
}
/// The largest elements of windows at random distances, and the position of each in its plane.
/// `random_samples` (batch, channels, 2) decides the distances: numbers in [0, 1) for width and
/// height. B. Graham, arXiv:1412.6071.
inline std::tuple<Tensor, Tensor> fractional_max_pool2d(const Tensor& self, const Each& kernel_size,
                                                        const Ints& output_size,
                                                        const Tensor& random_samples,
                                                        Location here = Location::current()) {
  return call<ops::fractional_max_pool2d>(here, self, kernel_size.ints(), output_size,
                                          random_samples);
}
/// The same over (…, depth, height, width). `random_samples` (batch, channels, 3) has the numbers
/// of depth, height and width.
inline std::tuple<Tensor, Tensor> fractional_max_pool3d(const Tensor& self, const Each& kernel_size,
                                                        const Ints& output_size,
                                                        const Tensor& random_samples,
                                                        Location here = Location::current()) {
  return call<ops::fractional_max_pool3d>(here, self, kernel_size.ints(), output_size,
                                          random_samples);
}
/// Planes of `output_size`, with each element of `self` at the position in `indices`, where a
/// max_pool found it, and zeros elsewhere. An index outside the plane is an error.
inline Tensor max_unpool2d(const Tensor& self, const Tensor& indices, const Dims& output_size,
                           Location here = Location::current()) {
  return call<ops::max_unpool2d>(here, self, indices, output_size);
}
/// The same in volumes. `stride` and `padding` are those of the pooling, three numbers each; they
/// do not change the result.
inline Tensor max_unpool3d(const Tensor& self, const Tensor& indices, const Dims& output_size,
                           const Each& stride, const Each& padding,
                           Location here = Location::current()) {
  return call<ops::max_unpool3d>(here, self, indices, output_size, stride.ints(), padding.ints());
}

/// The windows of an image ([batch,] channels, height, width) as columns: ([batch,] channels ×
/// kernel elements, windows). PyTorch's nn.functional.unfold.
inline Tensor im2col(const Tensor& self, const Each& kernel_size, const Each& dilation = 1,
                     const Each& padding = 0, const Each& stride = 1,
                     Location here = Location::current()) {
  return call<ops::im2col>(here, self, kernel_size.ints(), dilation.ints(), padding.ints(),
                           stride.ints());
}
/// The sum of such columns in an image of `output_size` (height, width). PyTorch's
/// nn.functional.fold.
inline Tensor col2im(const Tensor& self, const Dims& output_size, const Each& kernel_size,
                     const Each& dilation = 1, const Each& padding = 0, const Each& stride = 1,
                     Location here = Location::current()) {
  return call<ops::col2im>(here, self, output_size, kernel_size.ints(), dilation.ints(),
                           padding.ints(), stride.ints());
}

}  // namespace taper::eager
