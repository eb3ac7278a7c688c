// Shape rules of the distances between vectors.
#pragma once
#include "taper/kernels/shapes/broadcast.h"

namespace taper {

/// (…, P, M) and (…, R, M) -> (…, P, R); the leading dimensions broadcast.
template <>
struct Rule<ops::_cdist_forward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& x1, const TensorType<D>& x2, double p,
                    Maybe<int64_t> compute_mode, TensorType<D>& out) {
    if (!facts.require(x1.rank >= 2 && x2.rank >= 2,
                       TAPER_TEXT("needs two tensors of vectors, got {} and {} dimensions"),
                       D(x1.rank), D(x2.rank)) ||
        !facts.require(is_floating(x1.dtype) && x1.dtype == x2.dtype,
                       TAPER_TEXT("needs two tensors of one floating dtype")) ||
        !facts.require(p >= 0, TAPER_TEXT("p must not be negative or NaN")) ||
        !facts.require(!compute_mode || (*compute_mode >= 0 && *compute_mode <= 2),
                       TAPER_TEXT("compute_mode must be 0, 1 or 2")) ||
        !facts.equal(x1[x1.rank - 1], x2[x2.rank - 1],
                     TAPER_TEXT("vectors of {} and of {} elements")))
      return false;
    TensorType<D> batch1 = x1, batch2 = x2;
    batch1.rank -= 2, batch2.rank -= 2;
    if (!internal::broadcast(facts, out, batch1, batch2)) return false;
    out.dtype = x1.dtype;
    out[out.rank++] = x1[x1.rank - 2];
    out[out.rank++] = x2[x2.rank - 2];
    return true;
  }
};

/// (N, M) -> (N (N - 1) / 2)
template <>
struct Rule<ops::_pdist_forward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, double p, TensorType<D>& out) {
    if (!facts.require(self.rank == 2, TAPER_TEXT("needs a matrix, got {} dimensions"),
                       D(self.rank)) ||
        !facts.require(is_floating(self.dtype), TAPER_TEXT("needs a floating dtype")) ||
        !facts.require(p >= 0, TAPER_TEXT("p must not be negative or NaN")))
      return false;
    out.dtype = self.dtype, out.rank = 1;
    out[0] = self[0] * (self[0] - D(1)) / D(2);
    return true;
  }
};

}  // namespace taper
