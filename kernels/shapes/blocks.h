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
           facts.equal(input[input.rank - 1] % D(32), D(0),
                       TAPER_TEXT("input is rounded in units of 32: the remainder of its last "
                                  "dimension is {}, not {}"));
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
