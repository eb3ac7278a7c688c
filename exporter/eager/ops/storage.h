// Storage dtypes (f8_e4m3fn, f8_e5m2, u16, u32, u64) and elements read as another dtype.
#pragma once
#include <optional>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// The same bytes as elements of another dtype. The sizes stay if elements have the same size. If
/// they are smaller, the last dimension grows, and its stride must be 1. If they are larger, the
/// last dimension shrinks, and sizes, strides and the offset must be divisible. It has no
/// derivative.
inline Tensor view_dtype(const Tensor& self, DType dtype, Location here = Location::current()) {
  return call<ops::view_dtype>(here, self, dtype);
}

/// The product of two matrices of f8_e4m3fn or f8_e5m2, computed in f32: self mat2 scale_a scale_b
/// + bias. The scales are f32 with one element each, or (rows of self, 1) and (1, columns of mat2).
/// `out_dtype` is self's unless given. A result of 8 bits is divided by `scale_result` first.
inline Tensor scaled_mm(const Tensor& self, const Tensor& mat2, const Tensor& scale_a,
                        const Tensor& scale_b, std::optional<DType> out_dtype = {},
                        const Tensor& bias = {}, const Tensor& scale_result = {},
                        Location here = Location::current()) {
  return call<ops::_scaled_mm>(here, self, mat2, scale_a, scale_b, bias, scale_result, out_dtype,
                               false);
}

}  // namespace taper::eager
