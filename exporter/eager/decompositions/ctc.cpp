#include "taper/exporter/eager/ops/ctc.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/decompositions/reduced_loss.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

/// The arguments of both overloads, but the lengths.
struct CtcCall {
  Tensor log_probs, targets;
  int64_t blank, reduction;
  bool zero_infinity, has_batch;
};
/// With a batch of one, if there is none.
template <const Operator& op>
CtcCall ctc_call(const Arguments<op>& a) {
  CtcCall c{a.template tensor<"log_probs">(),      a.template tensor<"targets">().to(DType::i64),
            a.template integer<"blank">(),         a.template integer<"reduction">(),
            a.template boolean<"zero_infinity">(), true};
  if (c.log_probs.rank() != 2) return c;
  c.has_batch = false;
  c.log_probs = unsqueeze(c.log_probs, 1);
  if (c.targets.rank() == 1) c.targets = unsqueeze(c.targets, 0);
  return c;
}

/// For a mean, each loss is first divided by the length of its target, but not by 0.
Results reduced_by_length(const CtcCall& c, Tensor loss, const Tensor& divisor) {
  if (c.zero_infinity) loss = masked_fill(loss, eq(loss, Scalar(INFINITY)), Scalar(0));
  if (static_cast<Reduction>(c.reduction) == Reduction::mean)
    loss = div(loss, divisor.to(loss.dtype()));
  loss = reduced("ctc_loss", loss, c.reduction);
  return {c.has_batch ? loss : loss.reshape({})};
}

Results ctc_by_numbers(const CtcCall& c, const Ints& input_lengths, const Ints& target_lengths) {
  const Tensor loss = std::get<0>(call<ops::_ctc_loss>(c.log_probs, c.targets, input_lengths,
                                                       target_lengths, c.blank, c.zero_infinity));
  Ints divisor = target_lengths;
  for (int64_t& n : divisor) n = std::max(n, int64_t{1});
  return reduced_by_length(c, loss, Tensor::from(divisor, {static_cast<int64_t>(divisor.size())}));
}

/// Lengths (batch) as i64. Without a batch, they may also have no dimension.
Tensor lengths_of(const Tensor& lengths) {
  if (is_floating(lengths.dtype())) throw EagerError("ctc_loss: lengths must be integers");
  const Tensor result = cast(lengths, DType::i64);
  return result.rank() == 0 ? unsqueeze(result, 0) : result;
}

}  // namespace

TAPER_DECOMPOSITION(ctc_loss_IntList) {
  return ctc_by_numbers(ctc_call(a), a.integers<"input_lengths">(), a.integers<"target_lengths">());
}
// Known lengths need less memory: the longest target is known, too.
TAPER_DECOMPOSITION(ctc_loss_Tensor) {
  const Tensor input_lengths = lengths_of(a.tensor<"input_lengths">()),
               target_lengths = lengths_of(a.tensor<"target_lengths">());
  const CtcCall c = ctc_call(a);
  if (!input_lengths.is_traced() && !target_lengths.is_traced())
    return ctc_by_numbers(c, input_lengths.to_vector<int64_t>(),
                          target_lengths.to_vector<int64_t>());
  const Tensor loss = std::get<0>(call<ops::_ctc_loss_Tensor>(
      c.log_probs, c.targets, input_lengths, target_lengths, c.blank, c.zero_infinity));
  return reduced_by_length(c, loss, clamp_min(target_lengths, 1));
}

}  // namespace taper::eager::decompositions
