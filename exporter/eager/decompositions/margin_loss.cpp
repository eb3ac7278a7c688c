// Losses with a margin between scores, and losses of pairs and triplets. f16 and bf16 are computed
// in f32.
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/decompositions/reduced_loss.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

/// (classes) or (batch, classes) as (batch, classes). Throws for other shapes.
Tensor as_batch(const char* name, const Tensor& self) {
  if (self.rank() > 2 || (self.rank() > 0 && proves_equal(self.size(-1), Dim(0))))
    throw EagerError(std::string(name) +
                     ": self must be (classes) or (batch, classes), with "
                     "at least one class; it is " +
                     to_string(self.sizes()));
  return self.rank() == 2 ? self : reshape(self, {Dim(1), self.numel()});
}

}  // namespace

// log(1 + exp(-target self)), where target is 1 or -1
TAPER_DECOMPOSITION_ROUNDED_ONCE(soft_margin_loss, "self") {
  const Tensor self = a.tensor<"self">();
  const Tensor loss = log1p(exp(mul(neg(self), a.tensor<"target">())));
  return {reduced("soft_margin_loss", loss, a.integer<"reduction">())};
}

// self where target is 1, max(0, margin - self) where it is -1
TAPER_DECOMPOSITION_ROUNDED_ONCE(hinge_embedding_loss, "self") {
  const Tensor self = a.tensor<"self">(), target = a.tensor<"target">();
  const Tensor apart = clamp_min(rsub(self, a.real<"margin">()), 0);
  const Tensor loss =
      add(masked_fill(apart, eq(target, 1), 0), masked_fill(self, eq(target, -1), 0));
  return {reduced("hinge_embedding_loss", loss, a.integer<"reduction">())};
}

// max(0, margin - target (input1 - input2))
TAPER_DECOMPOSITION_ROUNDED_ONCE(margin_ranking_loss) {
  const Tensor first = a.tensor<"input1">();
  const Tensor lag =  // u8 wraps here as in PyTorch
      mul(neg(a.tensor<"target">()), sub(first, a.tensor<"input2">()));
  const Tensor loss = clamp_min(add(lag, a.real<"margin">()), 0);
  return {reduced("margin_ranking_loss", loss, a.integer<"reduction">())};
}

// 1 - cos where target is 1, max(0, cos - margin) where it is -1. A small number is added to each
// square, so that even a vector of zeros has a cosine.
TAPER_DECOMPOSITION_ROUNDED_ONCE(cosine_embedding_loss, "input1", "input2") {
  const Tensor x1 = a.tensor<"input1">(), x2 = a.tensor<"input2">(), target = a.tensor<"target">();
  if (target.rank() > 1 || x1.rank() != target.rank() + 1 || x2.rank() != x1.rank())
    throw EagerError(
        "cosine_embedding_loss: inputs must be (batch, features) and target "
        "(batch), or without batch; they are " +
        to_string(x1.sizes()) + ", " + to_string(x2.sizes()) + " and " + to_string(target.sizes()));
  const auto product = [&](const Tensor& x, const Tensor& y) { return sum(mul(x, y), {-1}); };
  constexpr double tiny = 1e-12;
  const Tensor squares = mul(add(product(x1, x1), tiny), add(product(x2, x2), tiny));
  const Tensor cosine = div(product(x1, x2), sqrt(squares));
  const Tensor apart = clamp_min(sub(cosine, a.real<"margin">()), 0);
  const Tensor loss =
      add(masked_fill(rsub(cosine, 1), ne(target, 1), 0), masked_fill(apart, ne(target, -1), 0));
  return {reduced("cosine_embedding_loss", loss, a.integer<"reduction">())};
}

// max(0, margin + |anchor - positive| - |anchor - negative|)
TAPER_DECOMPOSITION(triplet_margin_loss) {
  const Tensor anchor = a.tensor<"anchor">(), positive = a.tensor<"positive">(),
               negative = a.tensor<"negative">();
  if (anchor.rank() != positive.rank() || anchor.rank() != negative.rank())
    throw EagerError(
        "triplet_margin_loss: anchor, positive and negative must have one rank, "
        "they are " +
        to_string(anchor.sizes()) + ", " + to_string(positive.sizes()) + " and " +
        to_string(negative.sizes()));
  const double p = a.real<"p">(), eps = a.real<"eps">();
  const Tensor near = pairwise_distance(anchor, positive, p, eps);
  Tensor far = pairwise_distance(anchor, negative, p, eps);
  if (a.boolean<"swap">()) far = minimum(far, pairwise_distance(positive, negative, p, eps));
  const Tensor loss = clamp_min(add(sub(near, far), a.real<"margin">()), 0);
  return {reduced("triplet_margin_loss", loss, a.integer<"reduction">())};
}

// exp(input) - target input; or input - target log(input + eps) if input is not a logarithm. `full`
// adds Stirling's approximation of log(target!) for targets above 1.
TAPER_DECOMPOSITION_ROUNDED_ONCE(poisson_nll_loss) {
  const Tensor x = a.tensor<"input">(), target = a.tensor<"target">();
  Tensor loss = a.boolean<"log_input">() ? sub(exp(x), mul(target, x))
                                         : sub(x, mul(target, log(add(x, a.real<"eps">()))));
  if (a.boolean<"full">()) {
    constexpr double two_pi = 6.28318530717958647693;
    const Tensor stirling =
        add(sub(mul(target, log(target)), target), mul(log(mul(target, two_pi)), 0.5));
    loss = add(loss, masked_fill(stirling, le(target, 1), 0));
  }
  return {reduced("poisson_nll_loss", loss, a.integer<"reduction">())};
}

namespace {

/// x where x > 0, else 0. NaN is not above 0, so it becomes 0.
Tensor what_is_positive(const Tensor& x) { return masked_fill(x, logical_not(gt(x, 0)), 0); }

}  // namespace

// Σ_j max(0, margin - self[y] + self[j])^p / classes, over the classes j other than the target y.
// Each power is multiplied by weight[y].
TAPER_DECOMPOSITION_ROUNDED_ONCE(multi_margin_loss, "self") {
  const char* name = "multi_margin_loss";
  const Tensor self = a.tensor<"self">(), given = a.tensor<"target">(),
               weight = a.tensor<"weight">();
  const double p = a.real<"p">();
  if (p != 1 && p != 2)
    throw EagerError(std::string(name) + ": p must be 1 or 2, got " + std::to_string(p));
  const Tensor x = as_batch(name, self);
  const Dim batch = x.size(0), classes = x.size(1);
  if (given.rank() > 1 || proves_different(given.numel(), batch))
    throw EagerError(std::string(name) + ": target must have an element for each of the " +
                     batch.to_string() + " rows of self, it is " + to_string(given.sizes()));
  if (weight.defined() && (weight.rank() != 1 || proves_different(weight.size(0), classes)))
    throw EagerError(std::string(name) + ": weight must be (" + classes.to_string() + "), it is " +
                     to_string(weight.sizes()));
  const Tensor target = reshape(given, {batch, Dim(1)});
  Tensor z = what_is_positive(add(rsub(gather(x, 1, target), a.scalar<"margin">()), x));
  if (p == 2) z = mul(z, z);
  if (weight.defined())
    z = mul(z, reshape(index_select(weight, 0, reshape(target, {batch})), {batch, Dim(1)}));
  z = scatter(z, 1, target, Scalar(0));
  const Tensor loss = mean(z, {1});
  return {reduced(name, self.rank() == 2 ? loss : reshape(loss, {}), a.integer<"reduction">())};
}

// Σ max(0, 1 - self[y] + self[j]) / classes, over the targets y and the classes j that are not
// targets. The targets of a row end at the first -1.
TAPER_DECOMPOSITION_ROUNDED_ONCE(multilabel_margin_loss) {
  const char* name = "multilabel_margin_loss";
  const Tensor self = a.tensor<"self">(), given = a.tensor<"target">();
  const Tensor x = as_batch(name, self);
  if (given.sizes() != self.sizes())
    throw EagerError(std::string(name) + ": target must have the sizes of self " +
                     to_string(self.sizes()) + ", it is " + to_string(given.sizes()));
  const Tensor target = reshape(given, x.sizes());
  // counts is 1 up to the end of the targets. Behind the end, classes is 0 and does not count.
  const Tensor counts = cumprod(to(ge(target, 0), DType::i64), 1);
  const Tensor classes = mul(target, counts);
  const Tensor is_target = gt(scatter_add(zeros(x.sizes(), DType::i64), 1, classes, counts), 0);
  const Tensor z = what_is_positive(add(rsub(unsqueeze(gather(x, 1, classes), 2), 1),
                                        unsqueeze(x, 1)));  // (batch, target, class)
  const Tensor ignored = logical_or(unsqueeze(is_target, 1), unsqueeze(eq(counts, 0), 2));
  const Tensor total = sum(masked_fill(z, ignored, 0), {1, 2});
  const Tensor loss = div(total, Scalar(static_cast<double>(x.size(1).value())));
  return {reduced(name, self.rank() == 2 ? loss : reshape(loss, {}), a.integer<"reduction">())};
}

}  // namespace taper::eager::decompositions
