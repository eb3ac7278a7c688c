// Rules of the operators that quantize and dequantize: sizes of the input, in the dtype that the
// call names. What the scales must be is checked where an operator is taken apart.
#pragma once
#include "taper/kernels/rule.h"
#include "taper/kernels/shapes/checks.h"

namespace taper {
namespace internal {

template <class D>
bool quantized(Facts<D>& facts, const TensorType<D>& input, DType dtype, TensorType<D>& out) {
  out.like(input, dtype);
  return facts.require(is_floating(input.dtype) && input.dtype != DType::f64,
                       TAPER_TEXT("input must be f32, f16 or bf16"));
}
template <class D>
bool dequantized(Facts<D>& facts, const TensorType<D>& input, DType dtype, DType out_dtype,
                 TensorType<D>& out) {
  out.like(input, out_dtype);
  return facts.require(input.dtype == dtype,
                       TAPER_TEXT("input does not have the dtype that the call names"));
}
inline DType dtype_or_f32(Maybe<DType> dtype) { return dtype.present ? dtype.value : DType::f32; }

}  // namespace internal

template <>
struct Rule<ops::quantized_decomposed_quantize_per_tensor> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, double, int64_t, int64_t, int64_t,
                    DType dtype, TensorType<D>& out) {
    return internal::quantized(facts, input, dtype, out);
  }
};
template <>
struct Rule<ops::quantized_decomposed_quantize_per_tensor_tensor> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>&,
                    const TensorType<D>&, int64_t, int64_t, DType dtype, TensorType<D>& out) {
    return internal::quantized(facts, input, dtype, out);
  }
};
template <>
struct Rule<ops::quantized_decomposed_quantize_per_tensor_tensor2> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>&,
                    const TensorType<D>&, const TensorType<D>&, const TensorType<D>&, DType dtype,
                    TensorType<D>& out) {
    return internal::quantized(facts, input, dtype, out);
  }
};
template <>
struct Rule<ops::quantized_decomposed_quantize_per_channel> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>&,
                    const TensorType<D>&, int64_t, int64_t, int64_t, DType dtype,
                    TensorType<D>& out) {
    return internal::quantized(facts, input, dtype, out);
  }
};
template <>
struct Rule<ops::quantized_decomposed_quantize_per_channel_group> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>&,
                    const TensorType<D>&, int64_t, int64_t, DType dtype, int64_t,
                    TensorType<D>& out) {
    return internal::quantized(facts, input, dtype, out);
  }
};

template <>
struct Rule<ops::quantized_decomposed_dequantize_per_tensor> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, double, int64_t, int64_t, int64_t,
                    DType dtype, Maybe<DType> out_dtype, TensorType<D>& out) {
    const DType asked = internal::dtype_or_f32(out_dtype);  // times a real number
    return internal::dequantized(facts, input, dtype, is_floating(asked) ? asked : DType::f32, out);
  }
};
template <>
struct Rule<ops::quantized_decomposed_dequantize_per_tensor_tensor> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>&,
                    const TensorType<D>&, int64_t, int64_t, DType dtype, Maybe<DType> out_dtype,
                    TensorType<D>& out) {
    return internal::dequantized(facts, input, dtype, internal::dtype_or_f32(out_dtype), out);
  }
};
template <>
struct Rule<ops::quantized_decomposed_dequantize_per_channel> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>&,
                    const TensorType<D>*, int64_t, int64_t, int64_t, DType dtype,
                    Maybe<DType> out_dtype, TensorType<D>& out) {
    return internal::dequantized(facts, input, dtype, internal::dtype_or_f32(out_dtype), out);
  }
};
template <>
struct Rule<ops::quantized_decomposed_dequantize_per_channel_group> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>&,
                    const TensorType<D>*, int64_t, int64_t, DType dtype, int64_t,
                    DType output_dtype, TensorType<D>& out) {
    return internal::dequantized(facts, input, dtype, output_dtype, out);
  }
};

}  // namespace taper
