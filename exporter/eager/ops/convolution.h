// Convolution: cross-correlation with (out, in / groups, k…), over (batch, in, x…) or (in, x…).
//
//   result extent = (extent + 2 padding - dilation (kernel - 1) - 1) / stride + 1
//
// Transposed: the same read backwards, the gradient of a convolution with respect to its input,
// with weight (in, out / groups, k…).
//
//   result extent = (extent - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1
#pragma once
#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/ops/each.h"

namespace taper::eager {

/// How much padding a convolution gets without a number: none, or as much as keeps the extents
/// (stride must be 1).
enum class ConvPadding : bool { valid, same };

/// (batch, in, x) -> (batch, out, y)
inline Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                     const Each& stride = 1, const Each& padding = 0, const Each& dilation = 1,
                     Dim groups = 1, Location here = Location::current()) {
  return call<ops::conv1d>(here, input, weight, bias, stride.dims(), padding.dims(),
                           dilation.dims(), groups);
}
/// (batch, in, height, width) -> (batch, out, …)
inline Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                     const Each& stride = 1, const Each& padding = 0, const Each& dilation = 1,
                     Dim groups = 1, Location here = Location::current()) {
  return call<ops::conv2d>(here, input, weight, bias, stride.dims(), padding.dims(),
                           dilation.dims(), groups);
}
/// (batch, in, depth, height, width) -> (batch, out, …)
inline Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                     const Each& stride = 1, const Each& padding = 0, const Each& dilation = 1,
                     Dim groups = 1, Location here = Location::current()) {
  return call<ops::conv3d>(here, input, weight, bias, stride.dims(), padding.dims(),
                           dilation.dims(), groups);
}
inline Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Each& stride, ConvPadding padding, const Each& dilation = 1,
                     Dim groups = 1, Location here = Location::current()) {
  return call<ops::conv1d_padding>(here, input, weight, bias, stride.dims(),
                                   padding == ConvPadding::same ? "same" : "valid", dilation.dims(),
                                   groups);
}
inline Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Each& stride, ConvPadding padding, const Each& dilation = 1,
                     Dim groups = 1, Location here = Location::current()) {
  return call<ops::conv2d_padding>(here, input, weight, bias, stride.dims(),
                                   padding == ConvPadding::same ? "same" : "valid", dilation.dims(),
                                   groups);
}
inline Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Each& stride, ConvPadding padding, const Each& dilation = 1,
                     Dim groups = 1, Location here = Location::current()) {
  return call<ops::conv3d_padding>(here, input, weight, bias, stride.dims(),
                                   padding == ConvPadding::same ? "same" : "valid", dilation.dims(),
                                   groups);
}
/// Transposed, over one dimension.
inline Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                               const Each& stride = 1, const Each& padding = 0,
                               const Each& output_padding = 0, Dim groups = 1,
                               const Each& dilation = 1, Location here = Location::current()) {
  return call<ops::conv_transpose1d>(here, input, weight, bias, stride.dims(), padding.dims(),
                                     output_padding.dims(), groups, dilation.dims());
}
/// Transposed, over two dimensions.
inline Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                               const Each& stride = 1, const Each& padding = 0,
                               const Each& output_padding = 0, Dim groups = 1,
                               const Each& dilation = 1, Location here = Location::current()) {
  return call<ops::conv_transpose2d_input>(here, input, weight, bias, stride.dims(), padding.dims(),
                                           output_padding.dims(), groups, dilation.dims());
}
/// Transposed, over three dimensions.
inline Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                               const Each& stride = 1, const Each& padding = 0,
                               const Each& output_padding = 0, Dim groups = 1,
                               const Each& dilation = 1, Location here = Location::current()) {
  return call<ops::conv_transpose3d_input>(here, input, weight, bias, stride.dims(), padding.dims(),
                                           output_padding.dims(), groups, dilation.dims());
}
/// Over one to three dimensions, by input's rank; transposed or not. What the functions above
/// become.
inline Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor& bias,
                          const Dims& stride, const Dims& padding, const Dims& dilation,
                          bool transposed, const Dims& output_padding, Dim groups,
                          Location here = Location::current()) {
  return call<ops::convolution>(here, input, weight, bias, stride, padding, dilation, transposed,
                                output_padding, groups);
}

}  // namespace taper::eager
