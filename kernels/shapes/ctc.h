// Rules of the connectionist temporal classification loss.
#pragma once
#include "taper/kernels/rule.h"
#include "taper/kernels/shapes/checks.h"

namespace taper {
namespace internal {

/// log_probs (time, batch, classes); targets (batch, length), or all targets one after the other
template <class D>
bool check_ctc_tensors(Facts<D>& facts, const TensorType<D>& log_probs,
                       const TensorType<D>& targets, int64_t blank) {
  return facts.require(log_probs.rank == 3,
                       TAPER_TEXT("log_probs must be (time, batch, classes), it has {} dimensions"),
                       log_probs.rank) &&
         facts.require(is_floating(log_probs.dtype),
                       TAPER_TEXT("log_probs must have a floating dtype")) &&
         facts.require(targets.rank == 1 || targets.rank == 2,
                       TAPER_TEXT("targets must have 1 or 2 dimensions, they have {}"),
                       targets.rank) &&
         facts.require(targets.dtype == DType::i64, TAPER_TEXT("targets must be i64")) &&
         facts.require(blank >= 0, TAPER_TEXT("blank must be a class, it is {}"), blank) &&
         facts.less(D(blank), log_probs[2], TAPER_TEXT("blank {} is outside [0, {})")) &&
         (targets.rank == 1 || facts.equal(targets[0], log_probs[1],
                                           TAPER_TEXT("targets have {} rows for a batch of {}")));
}

/// The same, and for each example an input length in [0, time] and a target length.
template <class D>
bool check_ctc(Facts<D>& facts, const TensorType<D>& log_probs, const TensorType<D>& targets,
               Span<const int64_t> input_lengths, Span<const int64_t> target_lengths, int64_t blank,
               int64_t& longest) {
  if (!check_ctc_tensors(facts, log_probs, targets, blank) ||
      !facts.equal(D(input_lengths.size()), log_probs[1],
                   TAPER_TEXT("there are {} input_lengths for a batch of {}")) ||
      !facts.equal(D(target_lengths.size()), log_probs[1],
                   TAPER_TEXT("there are {} target_lengths for a batch of {}")))
    return false;
  D total(0);
  longest = 0;
  for (index_t b = 0; b < target_lengths.size(); ++b) {
    if (!facts.require(input_lengths[b] >= 0 && target_lengths[b] >= 0,
                       TAPER_TEXT("lengths must be 0 or more, got {} and {}"), input_lengths[b],
                       target_lengths[b]) ||
        !facts.at_least(log_probs[0], D(input_lengths[b]),
                        TAPER_TEXT("log_probs have {} steps, an input length is {}")))
      return false;
    if (targets.rank == 2 &&
        !facts.at_least(targets[1], D(target_lengths[b]),
                        TAPER_TEXT("targets have {} columns, a target length is {}")))
      return false;
    total = total + D(target_lengths[b]);
    if (target_lengths[b] > longest) longest = target_lengths[b];
  }
  return targets.rank == 2 ||
         facts.equal(targets[0], total, TAPER_TEXT("there are {} targets, their lengths make {}"));
}

/// Types of the loss (batch) and of log_alpha (batch, time, states of the longest target).
template <class D>
bool ctc_results(Facts<D>& facts, const TensorType<D>& log_probs, const D& longest,
                 TensorType<D>& loss, TensorType<D>& log_alpha) {
  loss.dtype = log_alpha.dtype = log_probs.dtype;
  loss.rank = 1, loss[0] = log_probs[1];
  log_alpha.rank = 3;
  log_alpha[0] = log_probs[1], log_alpha[1] = log_probs[0];
  log_alpha[2] = D(2) * longest + D(1);
  return has_countable_bytes(facts, log_alpha);
}

/// Whether the arguments that the forward operator gave have its types.
template <class D>
bool check_ctc_saved(Facts<D>& facts, const TensorType<D>& log_probs, const TensorType<D>& grad,
                     const TensorType<D>& loss, const TensorType<D>& log_alpha,
                     const TensorType<D>& own_loss, const TensorType<D>& own_alpha) {
  const TensorType<D>* const given[] = {&grad, &loss, &log_alpha};
  const TensorType<D>* const expected[] = {&own_loss, &own_loss, &own_alpha};
  for (int i = 0; i < 3; ++i)
    if (!facts.require(given[i]->dtype == log_probs.dtype,
                       TAPER_TEXT("all arguments must have the dtype of log_probs")) ||
        !same_sizes(facts, *given[i], *expected[i],
                    TAPER_TEXT("an argument has {} dimensions, not {}"),
                    TAPER_TEXT("an argument has extent {}, not {}")))
      return false;
  return true;
}

}  // namespace internal

template <>
struct Rule<ops::_ctc_loss> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& log_probs, const TensorType<D>& targets,
                    Span<const int64_t> input_lengths, Span<const int64_t> target_lengths,
                    int64_t blank, bool, TensorType<D>& loss, TensorType<D>& log_alpha) {
    int64_t longest = 0;
    if (!internal::check_ctc(facts, log_probs, targets, input_lengths, target_lengths, blank,
                             longest))
      return false;
    return internal::ctc_results(facts, log_probs, D(longest), loss, log_alpha);
  }
};

/// A run reads the lengths, so log_alpha has room for targets of any length.
template <>
struct Rule<ops::_ctc_loss_Tensor> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& log_probs, const TensorType<D>& targets,
                    const TensorType<D>& input_lengths, const TensorType<D>& target_lengths,
                    int64_t blank, bool, TensorType<D>& loss, TensorType<D>& log_alpha) {
    if (!internal::check_ctc_tensors(facts, log_probs, targets, blank)) return false;
    for (const TensorType<D>* lengths : {&input_lengths, &target_lengths})
      if (!facts.require(lengths->rank == 1 && lengths->dtype == DType::i64,
                         TAPER_TEXT("lengths must be a vector of i64")) ||
          !facts.equal((*lengths)[0], log_probs[1],
                       TAPER_TEXT("there are {} lengths for a batch of {}")))
        return false;
    return internal::ctc_results(facts, log_probs, targets[targets.rank - 1], loss, log_alpha);
  }
};

template <>
struct Rule<ops::_ctc_loss_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad, const TensorType<D>& log_probs,
                    const TensorType<D>& targets, Span<const int64_t> input_lengths,
                    Span<const int64_t> target_lengths, const TensorType<D>& loss,
                    const TensorType<D>& log_alpha, int64_t blank, bool zero_infinity,
                    TensorType<D>& out) {
    TensorType<D> own_loss, own_alpha;
    if (!Rule<ops::_ctc_loss>::shape(facts, log_probs, targets, input_lengths, target_lengths,
                                     blank, zero_infinity, own_loss, own_alpha))
      return false;
    out.like(log_probs);
    return internal::check_ctc_saved(facts, log_probs, grad, loss, log_alpha, own_loss, own_alpha);
  }
};

/// log_alpha may be narrower: PyTorch's has the states of the longest target of the batch.
template <>
struct Rule<ops::_ctc_loss_backward_Tensor> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad, const TensorType<D>& log_probs,
                    const TensorType<D>& targets, const TensorType<D>& input_lengths,
                    const TensorType<D>& target_lengths, const TensorType<D>& loss,
                    const TensorType<D>& log_alpha, int64_t blank, bool zero_infinity,
                    TensorType<D>& out) {
    TensorType<D> own_loss, own_alpha;
    if (!Rule<ops::_ctc_loss_Tensor>::shape(facts, log_probs, targets, input_lengths,
                                            target_lengths, blank, zero_infinity, own_loss,
                                            own_alpha) ||
        !facts.at_least(own_alpha[2], log_alpha[2],
                        TAPER_TEXT("the longest target has {} states, log_alpha has {}")))
      return false;
    own_alpha[2] = log_alpha[2];
    out.like(log_probs);
    return internal::check_ctc_saved(facts, log_probs, grad, loss, log_alpha, own_loss, own_alpha);
  }
};

}  // namespace taper
