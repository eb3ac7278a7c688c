#include "taper/exporter/eager/ops/distance.h"

#include <cmath>

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {
namespace {

/// dy / distance; 0 where distance is 0.
Tensor over(const Tensor& dy, const Tensor& distance) {
  const Tensor zero = distance == 0;
  return masked_fill(dy / masked_fill(distance, zero, 1), zero, 0);
}

/// The gradient of the p-norm of d along the last dimension; 0 where the norm or d is 0. The last
/// dimension of `dy` and `distance` is 1.
Tensor of_difference(const Tensor& dy, const Tensor& d, const Tensor& distance, double p) {
  if (p == 0) return zeros_like(d);
  if (p == 1) return dy * where(isnan(d), d, sign(d));
  if (p == 2) return over(dy, distance) * d;
  const Tensor size = abs(d);
  // to all elements of that size; as in PyTorch, NaN where the comparison meets NaN
  if (std::isinf(p)) {
    const Tensor smaller = clamp_max(ceil(abs(size - distance)), 1);
    return dy * sign(d) * (1 - smaller);
  }
  const Tensor zero = logical_or(d == 0, distance == 0);
  const Tensor ratio = masked_fill(size, zero, 1) / masked_fill(distance, distance == 0, 1);
  return masked_fill(dy * sign(d) * pow(ratio, p - 1), zero, 0);
}

}  // namespace

TAPER_DERIVATIVE(_cdist_forward, "x1", "x2", "result") {
  const Tensor x1 = saved.tensor<"x1">(), x2 = saved.tensor<"x2">(), distance = saved.result();
  const double p = saved.real<"p">();
  for (const Dim& d : distance.sizes())  // without distances there is no gradient, not even NaN
    if (proves_equal(d, Dim(0))) return {zeros_like(x1), zeros_like(x2)};
  if (p == 2) {  // Σ w (x1 - x2) is two matrix products, so no differences are stored
    const Tensor w = over(dy, distance);
    return {x1 * sum(w, {-1}, true) - matmul(w, x2),
            x2 * unsqueeze(sum(w, {-2}), -1) - matmul(mT(w), x1)};
  }
  const Tensor d = unsqueeze(x1, -2) - unsqueeze(x2, -3);  // (…, P, R, M)
  const Tensor g = of_difference(unsqueeze(dy, -1), d, unsqueeze(distance, -1), p);
  return {sum(g, {-2}), -sum(g, {-3})};
}

TAPER_DERIVATIVE(_pdist_forward, "self", "result") {
  const Tensor x = saved.tensor<"self">();
  const int64_t n = x.size(0).value();
  const Tensor pairs = triu_indices(n, n, 1), first = pairs[0], second = pairs[1];
  const Tensor d = index_select(x, 0, first) - index_select(x, 0, second);
  const Tensor g =
      of_difference(unsqueeze(dy, -1), d, unsqueeze(saved.result(), -1), saved.real<"p">());
  return {index_add(index_add(zeros_like(x), 0, first, g), 0, second, g, -1)};
}

}  // namespace taper::eager::derivatives
