// Distances and similarities of vectors. `p` is the order of the norm: 0 counts the places that
// differ, infinity takes the largest difference. All tensors and the result have one floating
// dtype. Errors: sizes that do not fit each other, a negative p.
#pragma once
#include <optional>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// The distances between all pairs of vectors of (…, P, M) and (…, R, M): (…, P, R). For p = 2 and
/// more than 25 vectors a matrix product computes them: faster, but less exact for vectors that are
/// close. `compute_mode` 1 always uses the matrix product, 2 never.
inline Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2,
                    std::optional<int64_t> compute_mode = {}, Location here = Location::current()) {
  return call<ops::cdist>(here, x1, x2, p, compute_mode);
}
/// The distances between all pairs of rows of a matrix (N, M): N (N - 1) / 2 of them, row by row.
inline Tensor pdist(const Tensor& self, double p = 2, Location here = Location::current()) {
  return call<ops::_pdist_forward>(here, self, p);
}
/// The p-norm of x1 - x2 + eps along the last dimension: (…, n) -> (…). `keepdim` keeps that
/// dimension with size 1. x1 and x2 broadcast.
inline Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-6,
                                bool keepdim = false, Location here = Location::current()) {
  return call<ops::pairwise_distance>(here, x1, x2, p, eps, keepdim);
}
/// x1 x2 / (max(|x1|, eps) max(|x2|, eps)), summed along `dim`, which is removed. x1 and x2
/// broadcast. The result lies in [-1, 1], except for rounding.
inline Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim = 1,
                                double eps = 1e-8, Location here = Location::current()) {
  return call<ops::cosine_similarity>(here, x1, x2, dim, eps);
}

}  // namespace taper::eager
