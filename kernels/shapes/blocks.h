// Rules of operators whose weights lie in blocks.
#pragma once
#include "taper/kernels/shapes/indexing.h"
#include "taper/kernels/shapes/matmul.h"

namespace taper {
namespace internal {

template <class D>
bool block_product(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& weight,
                   const TensorType<D>* bias, TensorType<D>& out) {
  return facts.require(input.dtype == DType::f32 && weight.dtype == DType::f32,
                       TAPER_TEXT("input and weight must be f32")) &&
         facts.require(weight.rank == 2, TAPER_TEXT("weight needs 2 dimensions, got {}"),
                       D(weight.rank)) &&
         Rule<ops::linear>::shape(facts, input, weight, bias, out);
}

/// input (m, k), weight (groups, n, k), offs (groups) -> (m, n)
template <class D>
bool grouped_block_product(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& weight,
                           const TensorType<D>& offs, TensorType<D>& out) {
  if (!facts.require(input.dtype == DType::f32 && weight.dtype == DType::f32,
                     TAPER_TEXT("input and weight must be f32")) ||
      !facts.require(input.rank == 2 && weight.rank == 3,
                     TAPER_TEXT("needs input (m, k) and weight (groups, n, k), got {} and {} "
                                "dimensions"),
                     D(input.rank), D(weight.rank)) ||
      !facts.require(offs.rank == 1 && is_index(offs.dtype),
                     TAPER_TEXT("offs must be i32 or i64 with 1 dimension, it has {}"),
                     D(offs.rank)) ||
      !facts.equal(input[1], weight[2], TAPER_TEXT("input has {} features, weight has {}")) ||
      !facts.equal(weight[0], offs[0], TAPER_TEXT("{} matrices do not fit {} groups")))
    return false;
  out.dtype = DType::f32, out.rank = 2;
  out[0] = input[0], out[1] = weight[1];
  return true;
}
template <class D>
bool is_rounded_in_units(Facts<D>& facts, const TensorType<D>& input) {
  return facts.equal(input[input.rank - 1] % D(32), D(0),
                     TAPER_TEXT("input is rounded in units of 32: the remainder of its last "
                                "dimension is {}, not {}"));
}

}  // namespace internal

template <>
struct Rule<ops::taper_block_linear> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& weight,
                    const TensorType<D>* bias, TensorType<D>& out) {
    return internal::block_product(facts, input, weight, bias, out);
  }
};
template <>
struct Rule<ops::taper_block_linear_q8> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& weight,
                    const TensorType<D>* bias, TensorType<D>& out) {
    return internal::block_product(facts, input, weight, bias, out) &&
           internal::is_rounded_in_units(facts, input);
  }
};
template <>
struct Rule<ops::taper_grouped_block_linear> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& weight,
                    const TensorType<D>& offs, TensorType<D>& out) {
    return internal::grouped_block_product(facts, input, weight, offs, out);
  }
};
template <>
struct Rule<ops::taper_grouped_block_linear_q8> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& weight,
                    const TensorType<D>& offs, TensorType<D>& out) {
    return internal::grouped_block_product(facts, input, weight, offs, out) &&
           internal::is_rounded_in_units(facts, input);
  }
};
template <>
struct Rule<ops::taper_block_embedding> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& weight, const TensorType<D>& indices,
                    TensorType<D>& out) {
    return facts.require(weight.dtype == DType::f32, TAPER_TEXT("weight must be f32")) &&
           Rule<ops::embedding>::shape(facts, weight, indices, D(-1), false, false, out);
  }
};

}  // namespace taper
