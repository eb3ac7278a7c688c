#include "taper/exporter/eager/ops/ctc.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/decompositions/reduced_loss.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/reduction.h"
#include "taper/exporter/eager/ops/view.h"

namespace taper::eager::decompositions {
namespace {

Ints elements(const Tensor& lengths, std::string_view op, Location here) {
  if (!lengths.defined() || is_floating(lengths.dtype()))
    throw EagerError(here, std::string(op) + ": lengths must be integers");
  need_elements(lengths, op, here);
  return lengths.to(DType::i64, here).to_vector<int64_t>();
}

/// A mean is one of the losses over the lengths of their targets.
Tensor reduced_by_length(Tensor loss, const Ints& target_lengths, int64_t reduction,
                         bool zero_infinity, Location here) {
  if (zero_infinity) loss = masked_fill(loss, eq(loss, Scalar(INFINITY), here), Scalar(0), here);
  if (static_cast<Reduction>(reduction) == Reduction::mean) {
    std::vector<double> lengths;
    for (const int64_t n : target_lengths)
      lengths.push_back(static_cast<double>(std::max(n, int64_t{1})));
    const Tensor divisor = Tensor::from(lengths, {static_cast<int64_t>(lengths.size())}, here);
    loss = div(loss, divisor.to(loss.dtype(), here), here);
  }
  return reduced("ctc_loss", loss, reduction, here);
}

Results ctc(const Tensor& log_probs, const Tensor& targets, const Ints& input_lengths,
            const Ints& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity,
            Location here) {
  const Tensor classes = targets.to(DType::i64, here);
  if (log_probs.rank() != 2) {
    const Tensor loss = std::get<0>(call<ops::_ctc_loss>(here, log_probs, classes, input_lengths,
                                                         target_lengths, blank, zero_infinity));
    return {reduced_by_length(loss, target_lengths, reduction, zero_infinity, here)};
  }
  const Tensor loss =
      std::get<0>(call<ops::_ctc_loss>(here, unsqueeze(log_probs, 1, here),
                                       classes.rank() == 1 ? unsqueeze(classes, 0, here) : classes,
                                       input_lengths, target_lengths, blank, zero_infinity));
  return {
      reduced_by_length(loss, target_lengths, reduction, zero_infinity, here).reshape({}, here)};
}

}  // namespace

TAPER_DECOMPOSITION(ctc_loss_IntList) {
  return ctc(a.tensor<"log_probs">(), a.tensor<"targets">(), a.integers<"input_lengths">(),
             a.integers<"target_lengths">(), a.integer<"blank">(), a.integer<"reduction">(),
             a.boolean<"zero_infinity">(), a.here());
}
TAPER_DECOMPOSITION(ctc_loss_Tensor) {
  return ctc(a.tensor<"log_probs">(), a.tensor<"targets">(),
             elements(a.tensor<"input_lengths">(), "ctc_loss", a.here()),
             elements(a.tensor<"target_lengths">(), "ctc_loss", a.here()), a.integer<"blank">(),
             a.integer<"reduction">(), a.boolean<"zero_infinity">(), a.here());
}

}  // namespace taper::eager::decompositions
