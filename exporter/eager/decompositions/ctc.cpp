#include "taper/exporter/eager/ops/ctc.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/decompositions/reduced_loss.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::decompositions {
namespace {

Ints elements(const Tensor& lengths, std::string_view op) {
  if (!lengths.defined() || is_floating(lengths.dtype()))
    throw EagerError(std::string(op) + ": lengths must be integers");
  need_elements(lengths, op);
  return lengths.to(DType::i64).to_vector<int64_t>();
}

/// For a mean, each loss is first divided by the length of its target.
Tensor reduced_by_length(Tensor loss, const Ints& target_lengths, int64_t reduction,
                         bool zero_infinity) {
  if (zero_infinity) loss = masked_fill(loss, eq(loss, Scalar(INFINITY)), Scalar(0));
  if (static_cast<Reduction>(reduction) == Reduction::mean) {
    std::vector<double> lengths;
    for (const int64_t n : target_lengths)
      lengths.push_back(static_cast<double>(std::max(n, int64_t{1})));
    const Tensor divisor = Tensor::from(lengths, {static_cast<int64_t>(lengths.size())});
    loss = div(loss, divisor.to(loss.dtype()));
  }
  return reduced("ctc_loss", loss, reduction);
}

Results ctc(const Tensor& log_probs, const Tensor& targets, const Ints& input_lengths,
            const Ints& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  const Tensor classes = targets.to(DType::i64);
  if (log_probs.rank() != 2) {
    const Tensor loss = std::get<0>(call<ops::_ctc_loss>(log_probs, classes, input_lengths,
                                                         target_lengths, blank, zero_infinity));
    return {reduced_by_length(loss, target_lengths, reduction, zero_infinity)};
  }
  const Tensor loss = std::get<0>(call<ops::_ctc_loss>(
      unsqueeze(log_probs, 1), classes.rank() == 1 ? unsqueeze(classes, 0) : classes, input_lengths,
      target_lengths, blank, zero_infinity));
  return {reduced_by_length(loss, target_lengths, reduction, zero_infinity).reshape({})};
}

}  // namespace

TAPER_DECOMPOSITION(ctc_loss_IntList) {
  return ctc(a.tensor<"log_probs">(), a.tensor<"targets">(), a.integers<"input_lengths">(),
             a.integers<"target_lengths">(), a.integer<"blank">(), a.integer<"reduction">(),
             a.boolean<"zero_infinity">());
}
TAPER_DECOMPOSITION(ctc_loss_Tensor) {
  return ctc(a.tensor<"log_probs">(), a.tensor<"targets">(),
             elements(a.tensor<"input_lengths">(), "ctc_loss"),
             elements(a.tensor<"target_lengths">(), "ctc_loss"), a.integer<"blank">(),
             a.integer<"reduction">(), a.boolean<"zero_infinity">());
}

}  // namespace taper::eager::decompositions
