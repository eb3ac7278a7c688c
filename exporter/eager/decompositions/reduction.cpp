// Composite reductions.
#include "taper/exporter/eager/ops/reduction.h"

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/view.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

template <const Operator& op>
Scalar correction_of(const Arguments<op>& a) {
  return a.template has<"correction">() ? a.template scalar<"correction">() : Scalar(1);
}

}  // namespace

TAPER_DECOMPOSITION(sum) {
  const std::optional<DType> dtype =
      a.has<"dtype">() ? std::optional(a.dtype<"dtype">()) : std::nullopt;
  return {sum(a.tensor<"self">(), Ints{}, false, dtype, a.here())};
}
// The root of a zero variance has gradient 0, not infinity: the root is taken of 1 there, and
// replaced.
TAPER_DECOMPOSITION_ROUNDED_ONCE(std_correction) {
  const Location here = a.here();
  const Tensor square =
      var(a.tensor<"self">(), a.integers<"dim">(), correction_of(a), a.boolean<"keepdim">(), here);
  const Tensor zero = eq(square, 0, here);
  return {masked_fill(sqrt(masked_fill(square, zero, 1, here), here), zero, 0, here)};
}
TAPER_DECOMPOSITION_ROUNDED_ONCE(var_mean_correction) {
  const Tensor self = a.tensor<"self">();
  const Ints dim = a.integers<"dim">();
  const bool keepdim = a.boolean<"keepdim">();
  return {var(self, dim, correction_of(a), keepdim, a.here()),
          mean(self, dim, keepdim, {}, a.here())};
}
// m + log(sum(exp(x - m))): m = max(x) keeps exp finite, and is 0 where it is infinite itself. m
// counts as a constant: its gradient cancels.
TAPER_DECOMPOSITION_ROUNDED_ONCE(logsumexp) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">();
  const Tensor x = is_floating(self.dtype()) ? self : cast(self, DType::f32, here);
  const Ints dim = a.integers<"dim">();
  const bool keepdim = a.boolean<"keepdim">();
  if (x.rank() == 0) return {x};
  bool empty = false;
  for (const Dim& d : x.sizes()) empty = empty || proves_equal(d, Dim(0));
  if (empty) return {log(sum(exp(x, here), dim, keepdim, {}, here), here)};
  const Tensor peak = amax(x.detach(), dim, true, here);
  const Tensor finite = masked_fill(peak, isinf(peak, here), 0, here);
  const Tensor total = log(sum(exp(sub(x, finite, 1, here), here), dim, keepdim, {}, here), here);
  return {add(total, keepdim ? finite : reshape(finite, total.sizes(), here), 1, here)};
}

}  // namespace taper::eager::decompositions
