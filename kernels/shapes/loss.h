// Rules of the negative log-likelihood loss.
#pragma once
#include "taper/kernels/rule.h"
#include "taper/kernels/shapes/checks.h"

namespace taper {

/// How a loss combines its elements. PyTorch's values.
enum class Reduction : int64_t { none = 0, mean = 1, sum = 2 };

namespace internal {

/// self (batch, classes) with target (batch), or self (classes) with target (); weight (classes).
template <class D>
bool check_nll(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& target,
               const TensorType<D>* weight, int64_t reduction) {
  if (!facts.require(is_floating(self.dtype), TAPER_TEXT("self must have a floating dtype")) ||
      !facts.require(self.rank == 1 || self.rank == 2,
                     TAPER_TEXT("self must be (classes) or (batch, classes), it has {} dimensions"),
                     self.rank) ||
      !facts.require(target.rank == self.rank - 1,
                     TAPER_TEXT("target must have {} dimensions, it has {}"), self.rank - 1,
                     target.rank) ||
      !facts.require(target.dtype == DType::i64, TAPER_TEXT("target must be i64")) ||
      !facts.require(reduction >= 0 && reduction <= 2,
                     TAPER_TEXT("reduction must be 0 (none), 1 (mean) or 2 (sum), got {}"),
                     reduction))
    return false;
  if (self.rank == 2 && !facts.equal(target[0], self[0],
                                     TAPER_TEXT("target has {} elements, self has a batch of {}")))
    return false;
  return optional_vector(facts, weight, self[self.rank - 1], self.dtype,
                         TAPER_TEXT("weight must have 1 dimension, it has {}"),
                         TAPER_TEXT("weight has {} elements, self has {} classes"),
                         TAPER_TEXT("weight must have the dtype of self"));
}

}  // namespace internal

template <>
struct Rule<ops::nll_loss_forward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& target,
                    const TensorType<D>* weight, int64_t reduction, D, TensorType<D>& output,
                    TensorType<D>& total_weight) {
    if (!internal::check_nll(facts, self, target, weight, reduction)) return false;
    output.dtype = total_weight.dtype = self.dtype;
    output.rank = total_weight.rank = 0;
    if (reduction == 0) output.like(target, self.dtype);
    return true;
  }
};

template <>
struct Rule<ops::nll_loss_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_output, const TensorType<D>& self,
                    const TensorType<D>& target, const TensorType<D>* weight, int64_t reduction, D,
                    const TensorType<D>& total_weight, TensorType<D>& out) {
    if (!internal::check_nll(facts, self, target, weight, reduction) ||
        !facts.require(grad_output.dtype == self.dtype && total_weight.dtype == self.dtype,
                       TAPER_TEXT("grad_output and total_weight must have the dtype of self")) ||
        !facts.equal(total_weight.numel(), D(1),
                     TAPER_TEXT("total_weight must have one element, it has {}")))
      return false;
    out.like(self);
    if (reduction != 0)
      return facts.equal(grad_output.numel(), D(1),
                         TAPER_TEXT("grad_output must have one element, it has {}"));
    return internal::same_sizes(facts, grad_output, target,
                                TAPER_TEXT("grad_output has {} dimensions, target {}"),
                                TAPER_TEXT("grad_output has {} elements, target {}"));
  }
};

}  // namespace taper
