#include "taper/exporter/eager/ops/loss.h"

#include <cmath>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/decompositions/reduced_loss.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

/// nll_loss_forward of self (batch, classes, …) with target (batch, …). The positions become part
/// of the batch.
Results nll(const char* name, const Tensor& self, const Tensor& target, const Tensor& weight,
            int64_t reduction, Dim ignore_index) {
  const auto loss = [&](const Tensor& x, const Tensor& t, Dim ignored) -> Results {
    const auto [output, total_weight] =
        call<ops::nll_loss_forward>(x, t, weight, reduction, ignored);
    return {output, total_weight};
  };
  if (self.rank() <= 2) return loss(self, target, ignore_index);
  Dims expected = self.sizes();
  expected.erase(expected.begin() + 1);
  if (target.sizes() != expected)
    throw EagerError(std::string(name) + ": target must be " + to_string(expected) + " for self " +
                     to_string(self.sizes()) + ", it is " + to_string(target.sizes()));
  const Dim count = target.numel();
  Results results;
  if (weight.defined()) {
    results = loss(movedim(self, 1, -1).reshape({count, self.size(1)}), target.reshape({count}),
                   ignore_index);
  } else {  // targets can name only one class, so self need not be permuted
    const Tensor ignored = eq(target, Scalar(ignore_index.value()));
    const Tensor known = unsqueeze(masked_fill(target, ignored, Scalar(0)), 1);
    const Tensor first_or_ignored = neg(cast(ignored, DType::i64));
    results =
        loss(gather(self, 1, known).reshape({count, 1}), first_or_ignored.reshape({count}), -1);
  }
  if (static_cast<Reduction>(reduction) == Reduction::none)
    results[0] = results[0].reshape(target.sizes());
  return results;
}

/// Throws if the target would be broadcast. This is rarely meant.
void need_same_sizes(const char* name, const Tensor& self, const Tensor& target) {
  const Dims a = self.sizes(), b = target.sizes();
  bool differ = a.size() != b.size();
  for (size_t i = 0; i < a.size() && !differ; ++i) differ = proves_different(a[i], b[i]);
  if (differ)
    throw EagerError(std::string(name) + ": target " + to_string(b) +
                     " must have the sizes of self " + to_string(a));
}

/// Reshapes a vector (classes) to broadcast with log-probabilities that have the classes in
/// dimension `dim`.
Tensor beside_classes(const Tensor& weight, int rank, int dim) {
  Dims sizes(static_cast<size_t>(rank), Dim(1));
  sizes[static_cast<size_t>(dim)] = weight.size(0);
  return weight.reshape(sizes);
}

/// number / classes, rounded once to `dtype`, for a number of classes that is known only at run
/// time.
Tensor for_each_class(double number, Dim classes, DType dtype) {
  const Tensor count = sum(ones({classes}, DType::f64), std::nullopt);
  return cast(div(scalar_tensor(number, DType::f64), count), dtype);
}

/// The loss for targets that are probabilities.
Tensor soft_cross_entropy(const Tensor& logs, Tensor target, const Tensor& weight,
                          int64_t reduction, double smoothing, int dim) {
  if (smoothing > 0) {
    const Dim classes = logs.size(dim);
    target = mul(target, Scalar(1 - smoothing));
    target = classes.is_constant()
                 ? add(target, Scalar(smoothing / static_cast<double>(classes.value())))
                 : add(target, for_each_class(smoothing, classes, target.dtype()));
  }
  Tensor loss = neg(mul(logs, target));
  if (weight.defined()) loss = mul(loss, beside_classes(weight, logs.rank(), dim));
  return reduced("cross_entropy_loss", sum(loss, {dim}), reduction);
}

/// The part of the loss that label smoothing adds: the loss of a target spread evenly over all
/// classes, not yet divided by their number.
Tensor spread_loss(const Tensor& logs, const Tensor& target, const Tensor& weight,
                   int64_t reduction, int64_t ignore_index, int dim) {
  const Tensor ignored = eq(target, Scalar(ignore_index));
  const Tensor weighted =
      weight.defined() ? mul(logs, beside_classes(weight, logs.rank(), dim)) : logs;
  const Tensor loss = masked_fill(neg(sum(weighted, {dim})), ignored, Scalar(0));
  if (static_cast<Reduction>(reduction) == Reduction::none) return loss;
  const Tensor total = sum(loss, std::nullopt);
  if (static_cast<Reduction>(reduction) == Reduction::sum) return total;
  Tensor counts = logical_not(ignored).to(logs.dtype());
  if (weight.defined()) {
    const Tensor known = masked_fill(target, ignored, Scalar(0));
    counts = mul(counts,
                 index_select(weight, 0, known.reshape({known.numel()})).reshape(target.sizes()));
  }
  return div(total, sum(counts, std::nullopt));
}

}  // namespace

Tensor reduced(const char* name, const Tensor& loss, int64_t reduction) {
  switch (static_cast<Reduction>(reduction)) {
    case Reduction::none:
      return loss;
    case Reduction::mean:
      return mean(loss, std::nullopt);
    case Reduction::sum:
      return sum(loss, std::nullopt);
  }
  throw EagerError(std::string(name) + ": reduction must be 0 (none), 1 (mean) or 2 (sum), got " +
                   std::to_string(reduction));
}

TAPER_DECOMPOSITION(nll_loss_nd) {
  return {nll("nll_loss_nd", a.tensor<"self">(), a.tensor<"target">(), a.tensor<"weight">(),
              a.integer<"reduction">(), a.dim<"ignore_index">())[0]};
}

TAPER_DECOMPOSITION(nll_loss2d_forward) {
  if (a.tensor<"self">().rank() != 4)
    throw EagerError("nll_loss2d_forward: self must have 4 dimensions, it is " +
                     to_string(a.tensor<"self">().sizes()));
  return nll("nll_loss2d_forward", a.tensor<"self">(), a.tensor<"target">(), a.tensor<"weight">(),
             a.integer<"reduction">(), a.dim<"ignore_index">());
}

TAPER_DECOMPOSITION(cross_entropy_loss) {
  const Tensor self = a.tensor<"self">(), target = a.tensor<"target">(),
               weight = a.tensor<"weight">();
  const int64_t reduction = a.integer<"reduction">();
  const double smoothing = a.real<"label_smoothing">();
  if (self.rank() == 0) throw EagerError("cross_entropy_loss: self needs a dimension of classes");
  if (!(smoothing >= 0 && smoothing <= 1))
    throw EagerError("cross_entropy_loss: label_smoothing must lie in [0, 1], got " +
                     std::to_string(smoothing));
  const int dim = self.rank() == 1 ? 0 : 1;
  const Tensor logs = call<ops::_log_softmax>(self, dim, false);
  if (is_floating(target.dtype())) {
    if (target.sizes() != self.sizes())
      throw EagerError(
          "cross_entropy_loss: a target of probabilities must have the shape of self " +
          to_string(self.sizes()) + ", it is " + to_string(target.sizes()));
    return {soft_cross_entropy(logs, target, weight, reduction, smoothing, dim)};
  }
  const Dim ignored = a.dim<"ignore_index">();
  const Tensor loss = nll("cross_entropy_loss", logs, target, weight, reduction, ignored)[0];
  if (smoothing == 0) return {loss};
  const Tensor spread = spread_loss(logs, target, weight, reduction, ignored.value(), dim);
  const Dim classes = self.size(dim);
  const Tensor smoothed =
      classes.is_constant() ? mul(spread, Scalar(smoothing / static_cast<double>(classes.value())))
                            : mul(spread, for_each_class(smoothing, classes, spread.dtype()));
  return {add(mul(loss, Scalar(1 - smoothing)), smoothed)};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(mse_loss) {
  const Tensor d = sub(a.tensor<"self">(), a.tensor<"target">());
  return {reduced("mse_loss", mul(d, d), a.integer<"reduction">())};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(l1_loss) {
  return {reduced("l1_loss", abs(sub(a.tensor<"self">(), a.tensor<"target">())),
                  a.integer<"reduction">())};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(smooth_l1_loss) {
  const double beta = a.real<"beta">();
  if (!(beta >= 0))
    throw EagerError("smooth_l1_loss: beta must not be negative, got " + std::to_string(beta));
  const Tensor d = sub(a.tensor<"self">(), a.tensor<"target">());
  if (beta == 0) return {reduced("smooth_l1_loss", abs(d), a.integer<"reduction">())};
  // d² / (2 beta) within beta, |d| - beta / 2 beyond. Both are c (d - c / 2) / beta
  const Tensor c = clamp(d, Scalar(-beta), Scalar(beta));
  const Tensor loss = mul(beta == 1 ? c : div(c, Scalar(beta)), sub(d, c, 0.5));
  return {reduced("smooth_l1_loss", loss, a.integer<"reduction">())};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(huber_loss, "self") {
  const double delta = a.real<"delta">();
  if (!(delta > 0))
    throw EagerError("huber_loss: delta must be positive, got " + std::to_string(delta));
  const Tensor d = sub(a.tensor<"self">(), a.tensor<"target">());
  if (std::isinf(delta))
    return {reduced("huber_loss", mul(mul(d, d), Scalar(0.5)), a.integer<"reduction">())};
  const Tensor c = clamp(d, Scalar(-delta), Scalar(delta));  // as in smooth_l1_loss
  const Tensor loss = mul(c, sub(d, c, 0.5));
  return {reduced("huber_loss", loss, a.integer<"reduction">())};
}

namespace {

/// The loss of each element is (t - 1) log(1 - x) - t log(x), with logarithms limited to at least
/// -100. The gradient is PyTorch's, whose denominator x (1 - x) has a lower limit, too: where a
/// sigmoid saturates, the chain rule would multiply 0 by infinity.
CustomFunction cross_entropy_of_bits() {
  const auto loss = [](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
    const Tensor &x = inputs[0], &t = inputs[1];
    const auto bounded_log = [&](const Tensor& p) { return clamp_min(log(p), Scalar(-100)); };
    const Tensor of_ones = mul(t, bounded_log(x)),
                 of_zeros = mul(sub(t, Scalar(1)), bounded_log(rsub(x, Scalar(1))));
    return {sub(of_zeros, of_ones)};
  };
  const auto gradient = [here = place()](const std::vector<Tensor>& inputs,
                                         const std::vector<Tensor>&,
                                         const Gradients& dys) -> Gradients {
    const PlaceScope scope(here);
    const Tensor &x = inputs[0], &t = inputs[1], &dy = dys[0];
    const Tensor rest = rsub(x, Scalar(1));
    Gradients result(2);
    if (x.requires_grad())
      result[0] = div(mul(dy, sub(x, t)), clamp_min(mul(rest, x), Scalar(1e-12)));
    if (t.requires_grad()) result[1] = mul(dy, sub(log(rest), log(x)));
    return result;
  };
  return {"binary_cross_entropy", loss, gradient};
}

/// Eager looks at the elements; a trace does not know them.
void need_probabilities(const char* name, const Tensor& x) {
  if (x.is_traced() || all(logical_and(ge(x, 0), le(x, 1))).item<bool>()) return;
  throw EagerError(std::string("binary_cross_entropy: an element of ") + name +
                   " lies outside [0, 1]; for scores that are no probabilities, use "
                   "binary_cross_entropy_with_logits");
}

}  // namespace

TAPER_DECOMPOSITION_ROUNDED_ONCE(binary_cross_entropy, "self") {
  const Tensor x = a.tensor<"self">(), t = a.tensor<"target">(), weight = a.tensor<"weight">();
  need_same_sizes("binary_cross_entropy", x, t);
  need_probabilities("self", x);
  need_probabilities("target", t);
  Tensor loss = apply(cross_entropy_of_bits(), {x, t})[0];
  if (weight.defined()) loss = mul(loss, weight);
  return {reduced("binary_cross_entropy", loss, a.integer<"reduction">())};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(binary_cross_entropy_with_logits, "target") {
  const Tensor x = a.tensor<"self">(), t = a.tensor<"target">();
  const Tensor weight = a.tensor<"weight">(), pos_weight = a.tensor<"pos_weight">();
  need_same_sizes("binary_cross_entropy_with_logits", x, t);
  // (1 - t) x - (1 + (pos_weight - 1) t) log sigmoid(x)
  Tensor logs = log_sigmoid(x);
  if (pos_weight.defined()) logs = mul(logs, add(mul(sub(pos_weight, Scalar(1)), t), Scalar(1)));
  Tensor loss = sub(mul(rsub(t, Scalar(1)), x), logs);
  if (weight.defined()) loss = mul(loss, weight);
  return {reduced("binary_cross_entropy_with_logits", loss, a.integer<"reduction">())};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(kl_div) {
  const Tensor x = a.tensor<"self">(), t = a.tensor<"target">();
  if (a.boolean<"log_target">())
    return {reduced("kl_div", mul(exp(t), sub(t, x)), a.integer<"reduction">())};
  // t log(t) is 0 at t = 0, where it has no derivative
  return {reduced("kl_div", sub(xlogy(t, t), mul(t, x)), a.integer<"reduction">())};
}

}  // namespace taper::eager::decompositions
