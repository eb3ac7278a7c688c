// Rules of operators that quantize and dequantize. Results have the sizes of the input and the
// dtype that the call names. Scales must fit these sizes.
#pragma once
#include "taper/kernels/rule.h"
#include "taper/kernels/shapes/checks.h"

namespace taper {
namespace internal {

template <class D>
bool is_quantized_dtype(Facts<D>& facts, DType dtype) {
  return facts.require(
      dtype == DType::u8 || dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32,
      TAPER_TEXT("the dtype must be u8, i8, i16 or i32"));
}
template <class D>
bool quantized(Facts<D>& facts, const TensorType<D>& input, DType dtype, TensorType<D>& out) {
  out.like(input, dtype);
  return facts.require(is_floating(input.dtype) && input.dtype != DType::f64,
                       TAPER_TEXT("input must be f32, f16 or bf16")) &&
         is_quantized_dtype(facts, dtype);
}
template <class D>
bool dequantized(Facts<D>& facts, const TensorType<D>& input, DType dtype, DType out_dtype,
                 TensorType<D>& out) {
  out.like(input, out_dtype);
  return facts.require(input.dtype == dtype,
                       TAPER_TEXT("input does not have the dtype that the call names"));
}
inline DType dtype_or_f32(Maybe<DType> dtype) { return dtype.present ? dtype.value : DType::f32; }

template <class D>
bool is_single(Facts<D>& facts, const TensorType<D>& t) {
  return facts.equal(t.numel(), D(1),
                     TAPER_TEXT("scale and zero_point must have one element, not {}"));
}
template <class D>
bool are_ends(Facts<D>& facts, const TensorType<D>& quant_min, const TensorType<D>& quant_max) {
  constexpr const char* text = TAPER_TEXT("quant_min and quant_max must have one element, not {}");
  return facts.equal(quant_min.numel(), D(1), text) && facts.equal(quant_max.numel(), D(1), text);
}

/// Requires a vector with one element for each index of x along `axis`.
template <class D>
bool is_along(Facts<D>& facts, const TensorType<D>& vector, int64_t axis, const TensorType<D>& x) {
  return facts.require(x.rank > 0, TAPER_TEXT("a tensor of rank 0 has no channels")) &&
         normalize_dim(facts, axis, x.rank) &&
         facts.require(vector.rank == 1,
                       TAPER_TEXT("scales and zero_points must have rank 1, not {}"),
                       vector.rank) &&
         facts.equal(vector[0], x[static_cast<int>(axis)],
                     TAPER_TEXT("there are {} scales or zero points for {} channels"));
}

/// Requires one element for each row of x, which broadcasts over the row.
template <class D>
bool is_for_rows(Facts<D>& facts, const TensorType<D>& t, const TensorType<D>& x) {
  if (!facts.require(t.rank == x.rank && x.rank > 0 && facts.is_one(t[x.rank - 1]),
                     TAPER_TEXT("scales and zero_points must have one element for each row")))
    return false;
  for (int d = 0; d + 1 < x.rank; ++d)
    if (!facts.equal(t[d], x[d], TAPER_TEXT("{} scales or zero points stand beside {} rows")))
      return false;
  return true;
}

/// Requires one element for each group of elements of x. The groups divide a row. But if a row is
/// shorter than `group_size` and the scales are a column, a row is a group.
template <class D>
bool are_for_groups(Facts<D>& facts, const TensorType<D>& scales, const TensorType<D>* zero_points,
                    const TensorType<D>& x, int64_t group_size) {
  if (!facts.require(group_size > 1, TAPER_TEXT("group_size {} must be at least 2"), group_size) ||
      !facts.require(x.rank > 0, TAPER_TEXT("a tensor of rank 0 has no groups")) ||
      !facts.require(
          scales.rank < max_rank && (zero_points == nullptr || zero_points->rank < max_rank),
          TAPER_TEXT("scales and zero_points have too many dimensions")))
    return false;
  const D row = x[x.rank - 1];
  D group(group_size);
  if (scales.rank > 0 && facts.is_one(scales[scales.rank - 1]) && facts.proves_less(D(0), row) &&
      facts.proves_less(row, group))
    group = row;
  constexpr const char* text = TAPER_TEXT("{} scales or zero points stand beside {} groups");
  const D groups = x.numel() / group;
  return facts.equal(row % group, D(0),
                     TAPER_TEXT("group_size must divide a row: the remainder is {}, not {}")) &&
         facts.equal(scales.numel(), groups, text) &&
         (zero_points == nullptr || facts.equal(zero_points->numel(), groups, text));
}

/// Requires blocks that divide x along each dimension.
template <class D>
bool are_blocks(Facts<D>& facts, const TensorType<D>& x, const DimList<D>& block_size) {
  if (!facts.require(block_size.size() == x.rank,
                     TAPER_TEXT("block_size has {} entries for {} dimensions"), block_size.size(),
                     x.rank))
    return false;
  for (int d = 0; d < x.rank; ++d)
    if (!facts.at_least(block_size[d], D(1), TAPER_TEXT("a block of {} is less than {}")) ||
        !facts.equal(x[d] % block_size[d], D(0),
                     TAPER_TEXT("block_size must divide input: the remainder is {}, not {}")))
      return false;
  return true;
}
/// Requires one scale, and one zero point if there are any, for each block of x.
template <class D>
bool are_for_blocks(Facts<D>& facts, const TensorType<D>& scale, const TensorType<D>* zero_point,
                    const TensorType<D>& x, const DimList<D>& block_size) {
  if (!are_blocks(facts, x, block_size)) return false;
  D blocks(1);
  for (int d = 0; d < x.rank; ++d) blocks = blocks * (x[d] / block_size[d]);
  constexpr const char* text = TAPER_TEXT("{} scales or zero points stand beside {} blocks");
  return facts.equal(scale.numel(), blocks, text) &&
         (zero_point == nullptr || facts.equal(zero_point->numel(), blocks, text));
}

}  // namespace internal

template <>
struct Rule<ops::quantized_decomposed_quantize_per_tensor> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, double, int64_t, int64_t, int64_t,
                    DType dtype, TensorType<D>& out) {
    return internal::quantized(facts, input, dtype, out);
  }
};
template <>
struct Rule<ops::quantized_decomposed_quantize_per_tensor_tensor> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& scale,
                    const TensorType<D>& zero_point, int64_t, int64_t, DType dtype,
                    TensorType<D>& out) {
    return internal::quantized(facts, input, dtype, out) && internal::is_single(facts, scale) &&
           internal::is_single(facts, zero_point);
  }
};
template <>
struct Rule<ops::quantized_decomposed_quantize_per_tensor_tensor2> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& scale,
                    const TensorType<D>& zero_point, const TensorType<D>& quant_min,
                    const TensorType<D>& quant_max, DType dtype, TensorType<D>& out) {
    return internal::quantized(facts, input, dtype, out) && internal::is_single(facts, scale) &&
           internal::is_single(facts, zero_point) &&
           internal::are_ends(facts, quant_min, quant_max);
  }
};
template <>
struct Rule<ops::quantized_decomposed_quantize_per_channel> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& scales,
                    const TensorType<D>& zero_points, int64_t axis, int64_t, int64_t, DType dtype,
                    TensorType<D>& out) {
    return internal::quantized(facts, input, dtype, out) &&
           internal::is_along(facts, scales, axis, input) &&
           internal::is_along(facts, zero_points, axis, input);
  }
};
template <>
struct Rule<ops::quantized_decomposed_quantize_per_token> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& scales,
                    const TensorType<D>& zero_points, int64_t, int64_t, DType dtype,
                    TensorType<D>& out) {
    return internal::quantized(facts, input, dtype, out) &&
           internal::is_for_rows(facts, scales, input) &&
           internal::is_for_rows(facts, zero_points, input);
  }
};
template <>
struct Rule<ops::quantized_decomposed_quantize_per_channel_group> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& scales,
                    const TensorType<D>& zero_points, int64_t, int64_t, DType dtype,
                    int64_t group_size, TensorType<D>& out) {
    return internal::quantized(facts, input, dtype, out) &&
           internal::are_for_groups(facts, scales, &zero_points, input, group_size);
  }
};

template <>
struct Rule<ops::quantized_decomposed_dequantize_per_tensor> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, double, int64_t, int64_t, int64_t,
                    DType dtype, Maybe<DType> out_dtype, TensorType<D>& out) {
    const DType asked = internal::dtype_or_f32(out_dtype);  // times a real number
    return internal::dequantized(facts, input, dtype, is_floating(asked) ? asked : DType::f32, out);
  }
};
template <>
struct Rule<ops::quantized_decomposed_dequantize_per_tensor_tensor> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& scale,
                    const TensorType<D>& zero_point, int64_t, int64_t, DType dtype,
                    Maybe<DType> out_dtype, TensorType<D>& out) {
    return internal::dequantized(facts, input, dtype, internal::dtype_or_f32(out_dtype), out) &&
           internal::is_single(facts, scale) && internal::is_single(facts, zero_point);
  }
};
template <>
struct Rule<ops::quantized_decomposed_dequantize_per_tensor_tensor2> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& scale,
                    const TensorType<D>& zero_point, const TensorType<D>& quant_min,
                    const TensorType<D>& quant_max, DType dtype, Maybe<DType> out_dtype,
                    TensorType<D>& out) {
    return internal::dequantized(facts, input, dtype, internal::dtype_or_f32(out_dtype), out) &&
           internal::is_single(facts, scale) && internal::is_single(facts, zero_point) &&
           internal::are_ends(facts, quant_min, quant_max);
  }
};
template <>
struct Rule<ops::quantized_decomposed_dequantize_per_channel> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& scales,
                    const TensorType<D>* zero_points, int64_t axis, int64_t, int64_t, DType dtype,
                    Maybe<DType> out_dtype, TensorType<D>& out) {
    return internal::dequantized(facts, input, dtype, internal::dtype_or_f32(out_dtype), out) &&
           internal::is_along(facts, scales, axis, input) &&
           (zero_points == nullptr || internal::is_along(facts, *zero_points, axis, input));
  }
};
template <>
struct Rule<ops::quantized_decomposed_dequantize_per_token> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& scales,
                    const TensorType<D>& zero_points, int64_t, int64_t, DType dtype,
                    DType output_dtype, TensorType<D>& out) {
    return internal::dequantized(facts, input, dtype, output_dtype, out) &&
           internal::is_for_rows(facts, scales, input) &&
           internal::is_for_rows(facts, zero_points, input);
  }
};
template <>
struct Rule<ops::quantized_decomposed_dequantize_per_channel_group> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& scales,
                    const TensorType<D>* zero_points, int64_t, int64_t, DType dtype,
                    int64_t group_size, DType output_dtype, TensorType<D>& out) {
    return internal::dequantized(facts, input, dtype, output_dtype, out) &&
           internal::are_for_groups(facts, scales, zero_points, input, group_size);
  }
};

// The numbers that quantize a tensor, from its elements: one scale and one zero point for all, or
// for each row.
namespace internal {
template <class D>
bool is_chosen_from(Facts<D>& facts, const TensorType<D>& input) {
  return facts.require(is_floating(input.dtype) && input.dtype != DType::f64,
                       TAPER_TEXT("input must be f32, f16 or bf16"));
}
template <class D>
bool chooses_for_all(Facts<D>& facts, const TensorType<D>& input, TensorType<D>& scale,
                     TensorType<D>& zero_point) {
  scale.rank = 1, scale[0] = D(1), scale.dtype = DType::f64;
  zero_point.like(scale, DType::i64);
  return is_chosen_from(facts, input);
}
template <class D>
bool chooses_for_rows(Facts<D>& facts, const TensorType<D>& input, DType scale_dtype,
                      DType zero_dtype, TensorType<D>& scales, TensorType<D>& zero_points) {
  if (!is_chosen_from(facts, input) ||
      !facts.require(input.rank > 0, TAPER_TEXT("a tensor of rank 0 has no rows")))
    return false;
  scales.like(input, scale_dtype);
  scales[input.rank - 1] = D(1);
  zero_points.like(scales, zero_dtype);
  return true;
}
}  // namespace internal
template <>
struct Rule<ops::quantized_decomposed_choose_qparams_tensor> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, int64_t, int64_t, double, DType,
                    TensorType<D>& scale, TensorType<D>& zero_point) {
    return internal::chooses_for_all(facts, input, scale, zero_point);
  }
};
template <>
struct Rule<ops::quantized_decomposed_choose_qparams_symmetric_tensor> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, int64_t, int64_t, double, DType,
                    TensorType<D>& scale, TensorType<D>& zero_point) {
    return internal::chooses_for_all(facts, input, scale, zero_point);
  }
};
template <>
struct Rule<ops::quantized_decomposed_choose_qparams_per_token> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, DType, TensorType<D>& scales,
                    TensorType<D>& zero_points) {
    const DType dtype = input.dtype == DType::f16 ? DType::f32 : input.dtype;
    return internal::chooses_for_rows(facts, input, dtype, dtype, scales, zero_points);
  }
};
template <>
struct Rule<ops::quantized_decomposed_choose_qparams_per_token_asymmetric> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, DType, TensorType<D>& scales,
                    TensorType<D>& zero_points) {
    return internal::chooses_for_rows(facts, input, DType::f64, DType::i64, scales, zero_points);
  }
};

// torchao: one scale for each block, which may have any shape
template <>
struct Rule<ops::torchao_quantize_affine> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, DimList<D> block_size,
                    const TensorType<D>& scale, const TensorType<D>* zero_point, DType output_dtype,
                    Maybe<Scalar>, Maybe<Scalar>, TensorType<D>& out) {
    out.like(input, output_dtype);
    return internal::is_quantized_dtype(facts, output_dtype) &&
           facts.require(is_floating(input.dtype), TAPER_TEXT("input must be floating")) &&
           internal::are_for_blocks(facts, scale, zero_point, input, block_size);
  }
};
template <>
struct Rule<ops::torchao_dequantize_affine> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, DimList<D> block_size,
                    const TensorType<D>& scale, const TensorType<D>* zero_point, DType input_dtype,
                    Maybe<Scalar>, Maybe<Scalar>, DType output_dtype, TensorType<D>& out) {
    return internal::is_quantized_dtype(facts, input_dtype) &&
           internal::dequantized(facts, input, input_dtype, output_dtype, out) &&
           internal::are_for_blocks(facts, scale, zero_point, input, block_size);
  }
};
template <>
struct Rule<ops::torchao_choose_qparams_affine> {
  /// With `keepdim`, the results have the number of blocks along each dimension. Without, they
  /// leave out a dimension that is a single block.
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, std::string_view,
                    DimList<D> block_size, DType target_dtype, Maybe<Scalar>, Maybe<Scalar>,
                    Maybe<double>, Maybe<DType> scale_dtype, Maybe<DType> zero_point_dtype,
                    bool keepdim, TensorType<D>& scale, TensorType<D>& zero_point) {
    if (!internal::is_quantized_dtype(facts, target_dtype) ||
        !facts.require(is_floating(input.dtype), TAPER_TEXT("input must be floating")) ||
        !internal::are_blocks(facts, input, block_size))
      return false;
    scale.rank = 0;
    for (int d = 0; d < input.rank; ++d) {
      const bool is_split = keepdim || facts.proves_equal(block_size[d], D(1));
      if (!is_split && facts.proves_equal(block_size[d], input[d])) continue;
      if (!is_split && !facts.less(block_size[d], input[d],
                                   TAPER_TEXT("a dimension that is one block gives results of "
                                              "another rank; pass keepdim = true for both")))
        return false;
      scale[scale.rank++] = input[d] / block_size[d];
    }
    scale.dtype = scale_dtype.present ? scale_dtype.value : input.dtype;
    zero_point.like(scale, zero_point_dtype.present ? zero_point_dtype.value : DType::i32);
    return true;
  }
};

}  // namespace taper
