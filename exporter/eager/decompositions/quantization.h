// Functions that quantization to integers, fake quantization and its derivatives share.
#pragma once
#include <string_view>
#include <utility>

#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager {

/// Half precision is quantized after a cast to f32.
inline Tensor widened(const Tensor& x) { return is_half(x.dtype()) ? cast(x, DType::f32) : x; }

/// round(x * inverse) + zero_point, not yet clamped. Halves are rounded to even, and the zero point
/// is added after rounding. The two numbers are Scalars, or tensors that broadcast with x.
template <class Number>
Tensor unclamped(const Tensor& x, const Number& inverse, const Number& zero_point) {
  return add(round(mul(widened(x), inverse)), zero_point);
}

/// The only number in a tensor of any rank, as a 0-dim tensor. Throws unless there is exactly one.
Tensor single(const Tensor& t, std::string_view what, DType dtype, std::string_view op);
/// The dimension that `axis` names. Throws if x has no such axis, or if the vector does not have
/// one number for each index along it.
int64_t channel_of(const Tensor& vector, std::string_view what, int64_t axis, const Tensor& x,
                   std::string_view op);
/// The vector, shaped so that it broadcasts with x. Throws as `channel_of` does.
Tensor along(const Tensor& vector, std::string_view what, int64_t axis, const Tensor& x,
             std::string_view op);

/// The range [least, most], widened to contain 0. If an end is 0 already, it keeps half of its
/// gradient, as in PyTorch.
inline std::pair<Tensor, Tensor> with_zero(const Tensor& least, const Tensor& most) {
  return {minimum(least, zeros_like(least)), maximum(most, zeros_like(most))};
}

/// The least and the greatest quantized value of a dtype: u8, i8, i16 or i32. Throws for another
/// dtype.
std::pair<int64_t, int64_t> integers_of(DType dtype, std::string_view op);
/// Throws unless low <= high and `dtype` can hold both.
void check_range(int64_t low, int64_t high, DType dtype, std::string_view op);
/// Throws unless `t` has the dtype that the call names, which is one of these integers.
void check_dtype(const Tensor& t, DType dtype, std::string_view op);
/// Throws unless `t` is f32, f16 or bf16.
void check_quantizable(const Tensor& t, std::string_view op);

/// The numbers of a fake quantization, in f32.
template <class Number>
struct Grid {
  Number inverse, scale, zero_point;
};
/// For the whole tensor. The scale is rounded to f32 before it is inverted, as in PyTorch's kernel.
Grid<Scalar> grid_of(double scale, int64_t zero_point);
Grid<Tensor> grid_of(const Tensor& scale, const Tensor& zero_point, std::string_view op);
/// For each channel.
Grid<Tensor> grid_along(int64_t axis, const Tensor& x, const Tensor& scale,
                        const Tensor& zero_point, std::string_view op);

}  // namespace taper::eager
