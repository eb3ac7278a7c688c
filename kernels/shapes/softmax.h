// Rules of softmax and log-softmax, forward and backward.
#pragma once
#include "taper/kernels/rule.h"

namespace taper {

namespace internal {

struct SoftmaxRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim, bool half_to_float,
                    TensorType<D>& out) {
    if (!normalize_dim(facts, dim, self.rank)) return false;
    out.like(self);
    return facts.require(!half_to_float,
                         TAPER_TEXT("half_to_float must be false: it exists on GPUs only")) &&
           facts.require(is_floating(self.dtype), TAPER_TEXT("self must have a floating dtype"));
  }
};

struct SoftmaxBackwardRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_output, const TensorType<D>& output,
                    int64_t dim, DType input_dtype, TensorType<D>& out) {
    if (!normalize_dim(facts, dim, output.rank)) return false;
    if (!facts.require(grad_output.rank == output.rank,
                       TAPER_TEXT("grad_output has {} dimensions and output {}"), grad_output.rank,
                       output.rank))
      return false;
    for (int i = 0; i < output.rank; ++i)
      if (!facts.equal(grad_output[i], output[i],
                       TAPER_TEXT("grad_output has extent {} where output has {}")))
        return false;
    out.like(output, input_dtype);
    return facts.require(is_floating(output.dtype),
                         TAPER_TEXT("output must have a floating dtype")) &&
           facts.require(grad_output.dtype == output.dtype,
                         TAPER_TEXT("grad_output and output must have the same dtype")) &&
           facts.require(input_dtype == output.dtype,
                         TAPER_TEXT("input_dtype must be the dtype of output"));
  }
};

}  // namespace internal

template <>
struct Rule<ops::_softmax> : internal::SoftmaxRule {};
template <>
struct Rule<ops::_log_softmax> : internal::SoftmaxRule {};
template <>
struct Rule<ops::_softmax_backward_data> : internal::SoftmaxBackwardRule {};
template <>
struct Rule<ops::_log_softmax_backward_data> : internal::SoftmaxBackwardRule {};

}  // namespace taper
