#include "taper/exporter/nn/adaptive_softmax.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/text.h"
#include "taper/exporter/nn/check.h"

namespace taper::nn {
namespace {

const char* const adaptive = "AdaptiveLogSoftmaxWithLoss";

std::vector<int64_t> checked(int64_t n_classes, std::vector<int64_t> cutoffs, Location here) {
  int64_t before = 0;
  for (const int64_t cutoff : cutoffs) {
    if (cutoff <= before || cutoff >= n_classes)
      throw EagerError(here, std::string(adaptive) + ": cutoff " + std::to_string(cutoff) +
                                 " must be above " + std::to_string(before) + " and below " +
                                 std::to_string(n_classes) + ", the number of classes");
    before = cutoff;
  }
  if (cutoffs.empty())
    throw EagerError(here, std::string(adaptive) + ": there is no cutoff; give at least one");
  cutoffs.push_back(n_classes);
  return cutoffs;
}

Linear head_for(int64_t in_features, const std::vector<int64_t>& cutoffs, bool bias,
                Location here) {
  internal::check_sizes(adaptive, {{"in_features", in_features}}, here);
  const int64_t clusters = static_cast<int64_t>(cutoffs.size()) - 1;
  return Linear(in_features, cutoffs.front() + clusters, {.bias = bias}, here);
}

/// Rows are examples; a single example becomes a row.
Tensor rows_of(const Tensor& input, int64_t in_features, Location here) {
  if ((input.rank() != 1 && input.rank() != 2) || !same(input.size(-1), Dim(in_features)))
    throw EagerError(here, std::string(adaptive) + ": input " + eager::to_string(input.sizes()) +
                               " must be (N, " + std::to_string(in_features) + ") or (" +
                               std::to_string(in_features) + ")");
  return input.rank() == 2 ? input : input.unsqueeze(0);
}

void check_targets(const Tensor& target, int64_t n_classes, Location here) {
  if (target.is_traced() || same(target.numel(), Dim(0))) return;
  const int64_t least = eager::min(target).item<int64_t>(),
                most = eager::max(target).item<int64_t>();
  if (least < 0 || most >= n_classes)
    throw EagerError(here, std::string(adaptive) + ": targets must lie in [0, " +
                               std::to_string(n_classes) + "), got " + std::to_string(least) +
                               " to " + std::to_string(most));
}

/// The elements of rows at one column each.
Tensor pick(const Tensor& rows, const Tensor& columns) {
  return eager::gather(rows, 1, columns.unsqueeze(1)).squeeze(1);
}

}  // namespace

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes,
                                                       std::vector<int64_t> cutoffs,
                                                       AdaptiveLogSoftmaxOptions options,
                                                       Location here)
    : head(head_for(in_features, checked(n_classes, cutoffs, here), options.head_bias, here)),
      cutoffs_(checked(n_classes, std::move(cutoffs), here)) {
  if (!(options.div_value > 0))
    throw EagerError(here, std::string(adaptive) + ": div_value " +
                               eager::to_text(options.div_value) + " must be above 0");
  for (int64_t i = 0; i < clusters(); ++i) {
    const size_t k = static_cast<size_t>(i);
    const int64_t features = static_cast<int64_t>(
        std::floor(static_cast<double>(in_features) / std::pow(options.div_value, i + 1)));
    tail.emplace_back(Linear(in_features, features, {.bias = false}, here),
                      Linear(features, cutoffs_[k + 1] - cutoffs_[k], {.bias = false}, here));
  }
  set_names();
}

AdaptiveLogSoftmaxWithLoss::Result AdaptiveLogSoftmaxWithLoss::forward(const Tensor& input,
                                                                       const Tensor& target,
                                                                       Location here) {
  const PlaceScope scope(here);
  const Tensor rows = rows_of(input, head.weight.size(1).value(), here);
  if (target.rank() != input.rank() - 1)
    throw EagerError(here, std::string(adaptive) + ": target " + eager::to_string(target.sizes()) +
                               " does not belong to the input " + eager::to_string(input.sizes()));
  check_targets(target, cutoffs_.back(), here);
  const Tensor classes = input.rank() == 2 ? target : target.unsqueeze(0);
  // a class behind the head is found in two steps: its cluster in the head, then itself
  Tensor in_head = classes, later;
  for (int64_t i = 0; i < clusters(); ++i) {
    const size_t k = static_cast<size_t>(i);
    Tensor member = classes >= cutoffs_[k];
    if (i + 1 < clusters()) member = eager::logical_and(member, classes < cutoffs_[k + 1]);
    in_head = eager::where(member, head_classes() + i, in_head);
    const Tensor scores = eager::log_softmax(tail[k](rows), 1);
    const Tensor local = eager::where(member, classes - cutoffs_[k], 0);
    const Tensor share = eager::where(member, pick(scores, local), 0);
    later = later.defined() ? later + share : share;
  }
  Tensor output = pick(eager::log_softmax(head(rows), 1), in_head);
  if (later.defined()) output = output + later;
  return {input.rank() == 2 ? output : output.squeeze(0), -eager::mean(output)};
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob_of(const Tensor& rows, const Tensor& scores) {
  const Tensor of_head = eager::log_softmax(scores, 1);
  std::vector<Tensor> parts{of_head.slice(1, 0, head_classes())};
  for (int64_t i = 0; i < clusters(); ++i) {
    const Tensor cluster = of_head.slice(1, head_classes() + i, head_classes() + i + 1);
    parts.push_back(eager::log_softmax(tail[static_cast<size_t>(i)](rows), 1) + cluster);
  }
  return eager::cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& input, Location here) {
  const PlaceScope scope(here);
  const Tensor rows = rows_of(input, head.weight.size(1).value(), here);
  const Tensor all = log_prob_of(rows, head(rows));
  return input.rank() == 2 ? all : all.squeeze(0);
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& input, Location here) {
  const PlaceScope scope(here);
  const Tensor rows = rows_of(input, head.weight.size(1).value(), here);
  const Tensor scores = head(rows), first = eager::argmax(scores, 1);
  // a class of the head that beats all clusters is the answer, even if a cluster has a likelier one
  const Tensor likeliest = eager::argmax(log_prob_of(rows, scores), 1);
  const Tensor classes = eager::where(first < head_classes(), first, likeliest);
  return input.rank() == 2 ? classes : classes.squeeze(0);
}

}  // namespace taper::nn
