// Convolution, as PyTorch computes it: cross-correlation of an input (batch, in, x…) or (in, x…)
// with a weight (out, in / groups, k…).
//
//   result extent = (extent + 2 padding - dilation (kernel - 1) - 1) / stride + 1
//
// Transposed convolution is the gradient of a convolution with respect to its input. Its weight is
// (in, out / groups, k…).
//
//   result extent = (extent - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1
//
// All arguments have one floating dtype; bias is (out). `stride`, `padding`, `dilation` and
// `output_padding` take one number for all dimensions or one for each, in elements. `groups` must
// divide in and out: group g of the result is computed from group g of the input.
//
// Errors: ranks, channels or dtypes that do not fit each other; a kernel larger than the padded
// input; an output_padding that is not below stride or dilation. docs/numerics.md says how a
// convolution is computed. Its result does not depend on threads.
#pragma once
#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/ops/each.h"

namespace taper::eager {

/// Padding by name: `valid` adds none, `same` keeps the extents (stride must be 1).
enum class ConvPadding : bool { valid, same };

/// (batch, in, x) -> (batch, out, y), or without the batch.
inline Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                     const Each& stride = 1, const Each& padding = 0, const Each& dilation = 1,
                     Dim groups = 1, Location here = Location::current()) {
  return call<ops::conv1d>(here, input, weight, bias, stride.dims(), padding.dims(),
                           dilation.dims(), groups);
}
/// (batch, in, height, width) -> (batch, out, …), or without the batch.
inline Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                     const Each& stride = 1, const Each& padding = 0, const Each& dilation = 1,
                     Dim groups = 1, Location here = Location::current()) {
  return call<ops::conv2d>(here, input, weight, bias, stride.dims(), padding.dims(),
                           dilation.dims(), groups);
}
/// (batch, in, depth, height, width) -> (batch, out, …), or without the batch.
inline Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                     const Each& stride = 1, const Each& padding = 0, const Each& dilation = 1,
                     Dim groups = 1, Location here = Location::current()) {
  return call<ops::conv3d>(here, input, weight, bias, stride.dims(), padding.dims(),
                           dilation.dims(), groups);
}
/// conv1d of self (time, batch, in) by weight (kernel, in, out), with `pad` zeros on both sides:
/// (time', batch, out).
inline Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias,
                       int64_t pad = 0, Location here = Location::current()) {
  return call<ops::conv_tbc>(here, self, weight, bias, pad);
}
/// `conv1d` with padding by name.
inline Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Each& stride, ConvPadding padding, const Each& dilation = 1,
                     Dim groups = 1, Location here = Location::current()) {
  return call<ops::conv1d_padding>(here, input, weight, bias, stride.dims(),
                                   padding == ConvPadding::same ? "same" : "valid", dilation.dims(),
                                   groups);
}
/// `conv2d` with padding by name.
inline Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Each& stride, ConvPadding padding, const Each& dilation = 1,
                     Dim groups = 1, Location here = Location::current()) {
  return call<ops::conv2d_padding>(here, input, weight, bias, stride.dims(),
                                   padding == ConvPadding::same ? "same" : "valid", dilation.dims(),
                                   groups);
}
/// `conv3d` with padding by name.
inline Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Each& stride, ConvPadding padding, const Each& dilation = 1,
                     Dim groups = 1, Location here = Location::current()) {
  return call<ops::conv3d_padding>(here, input, weight, bias, stride.dims(),
                                   padding == ConvPadding::same ? "same" : "valid", dilation.dims(),
                                   groups);
}
/// Transposed: (batch, in, x) -> (batch, out, y), or without the batch.
inline Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                               const Each& stride = 1, const Each& padding = 0,
                               const Each& output_padding = 0, Dim groups = 1,
                               const Each& dilation = 1, Location here = Location::current()) {
  return call<ops::conv_transpose1d>(here, input, weight, bias, stride.dims(), padding.dims(),
                                     output_padding.dims(), groups, dilation.dims());
}
/// Transposed: (batch, in, height, width) -> (batch, out, …), or without the batch.
inline Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                               const Each& stride = 1, const Each& padding = 0,
                               const Each& output_padding = 0, Dim groups = 1,
                               const Each& dilation = 1, Location here = Location::current()) {
  return call<ops::conv_transpose2d_input>(here, input, weight, bias, stride.dims(), padding.dims(),
                                           output_padding.dims(), groups, dilation.dims());
}
/// Transposed: (batch, in, depth, height, width) -> (batch, out, …), or without the batch.
inline Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                               const Each& stride = 1, const Each& padding = 0,
                               const Each& output_padding = 0, Dim groups = 1,
                               const Each& dilation = 1, Location here = Location::current()) {
  return call<ops::conv_transpose3d_input>(here, input, weight, bias, stride.dims(), padding.dims(),
                                           output_padding.dims(), groups, dilation.dims());
}
/// The general form of the functions above. The rank of the input, which has a batch, decides
/// between one, two and three dimensions. The lists have one number for each dimension.
inline Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor& bias,
                          const Dims& stride, const Dims& padding, const Dims& dilation,
                          bool transposed, const Dims& output_padding, Dim groups,
                          Location here = Location::current()) {
  return call<ops::convolution>(here, input, weight, bias, stride, padding, dilation, transposed,
                                output_padding, groups);
}

}  // namespace taper::eager
