// The connectionist temporal classification loss (Graves et al., 2006), for a sequence of classes
// whose places in time are not known.
#pragma once
#include "taper/exporter/eager/call.h"
#include "taper/kernels/shapes/loss.h"

namespace taper::eager {

/// -log of the probability of `targets`, summed over all ways to spread them over the steps, with
/// repetitions and blanks between.
///
///   log_probs        (time, batch, classes) or (time, classes): a log_softmax over the classes
///   targets          classes, none `blank`: (batch, length), (length), or all targets one
///                    after the other
///   input_lengths    how many steps of each example count
///   target_lengths   how long each target is; the mean divides each loss by this length first
///   zero_infinity    a target that is too long for its input has an infinite loss: count it as 0
///
/// Takes f32 and f64. The result is (batch); it is 0-dim if it is reduced or if there is no batch.
/// Errors: a length outside its dimension, a class outside [0, classes).
inline Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Ints& input_lengths,
                       const Ints& target_lengths, int64_t blank = 0,
                       Reduction reduction = Reduction::mean, bool zero_infinity = false,
                       Location here = Location::current()) {
  return call<ops::ctc_loss_IntList>(here, log_probs, targets, input_lengths, target_lengths, blank,
                                     static_cast<int64_t>(reduction), zero_infinity);
}
/// The same with lengths in integer tensors (batch). In a trace, a run reads them, and memory is
/// planned for targets of all lengths: rows (batch, length) need less than one long line.
inline Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, int64_t blank = 0,
                       Reduction reduction = Reduction::mean, bool zero_infinity = false,
                       Location here = Location::current()) {
  return call<ops::ctc_loss_Tensor>(here, log_probs, targets, input_lengths, target_lengths, blank,
                                    static_cast<int64_t>(reduction), zero_infinity);
}

}  // namespace taper::eager
