// Fake quantization, for quantization-aware training: values become integers and then values again.
// An integer q in [quant_min, quant_max] stands for scale (q - zero_point):
//
//   q      = clamp(round(self / scale) + zero_point, quant_min, quant_max)
//   result = scale (q - zero_point)
//
// The result has the sizes and the dtype of self, which is floating. Where nothing was clamped, the
// gradient goes through unchanged; elsewhere it is zero (Bengio et al., arXiv:1308.3432). Errors:
// quant_min above quant_max, an integer self, grids that do not fit the axis.
#pragma once
#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// One scale and zero point for all elements.
inline Tensor fake_quantize_per_tensor_affine(const Tensor& self, double scale, int64_t zero_point,
                                              int64_t quant_min, int64_t quant_max,
                                              Location here = Location::current()) {
  return call<ops::fake_quantize_per_tensor_affine>(here, self, scale, zero_point, quant_min,
                                                    quant_max);
}
/// The same with `scale` and `zero_point` in tensors of one element.
inline Tensor fake_quantize_per_tensor_affine(const Tensor& self, const Tensor& scale,
                                              const Tensor& zero_point, int64_t quant_min,
                                              int64_t quant_max,
                                              Location here = Location::current()) {
  return call<ops::fake_quantize_per_tensor_affine_tensor_qparams>(here, self, scale, zero_point,
                                                                   quant_min, quant_max);
}
/// A scale and a zero point for each slice along `axis`: 1-dim tensors with the extent of axis.
inline Tensor fake_quantize_per_channel_affine(const Tensor& self, const Tensor& scale,
                                               const Tensor& zero_point, int64_t axis,
                                               int64_t quant_min, int64_t quant_max,
                                               Location here = Location::current()) {
  return call<ops::fake_quantize_per_channel_affine>(here, self, scale, zero_point, axis, quant_min,
                                                     quant_max);
}

}  // namespace taper::eager
