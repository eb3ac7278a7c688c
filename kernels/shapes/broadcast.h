// Broadcasting: sizes are compared from the last dimension on; an extent of one is repeated.
#pragma once
#include "taper/kernels/rule.h"

namespace taper::internal {

/// Widens the sizes of `out` so that `in` broadcasts to them.
template <class D>
bool broadcast_into(Facts<D>& facts, TensorType<D>& out, const TensorType<D>& in) {
  const int rank = out.rank > in.rank ? out.rank : in.rank;
  TensorType<D> wide;
  for (int i = 1; i <= rank; ++i) {
    D& to = wide.sizes[rank - i];
    if (i > in.rank)
      to = out.sizes[out.rank - i];
    else if (i > out.rank || facts.is_one(out.sizes[out.rank - i]))
      to = in.sizes[in.rank - i];
    else if (facts.is_one(in.sizes[in.rank - i]))
      to = out.sizes[out.rank - i];
    else {
      to = out.sizes[out.rank - i];
      if (!facts.equal(to, in.sizes[in.rank - i],
                       TAPER_TEXT("sizes {} and {} do not broadcast (dimension {} from the end)"),
                       D(i)))
        return false;
    }
  }
  out.rank = rank;
  for (int i = 0; i < rank; ++i) out.sizes[i] = wide.sizes[i];
  return true;
}

/// The sizes to which all inputs broadcast. Sets rank and sizes of `out`.
template <class D, class... T>
bool broadcast(Facts<D>& facts, TensorType<D>& out, const T&... in) {
  out.rank = 0;
  return (broadcast_into(facts, out, in) && ...);
}

/// Requires that `in` broadcasts to exactly the sizes of `target`.
template <class D>
bool expands_to(Facts<D>& facts, const TensorType<D>& in, const TensorType<D>& target) {
  if (!facts.require(in.rank <= target.rank, TAPER_TEXT("rank {} does not broadcast to rank {}"),
                     in.rank, target.rank))
    return false;
  for (int i = 1; i <= in.rank; ++i) {
    const D &from = in.sizes[in.rank - i], &to = target.sizes[target.rank - i];
    if (facts.is_one(from)) continue;
    if (!facts.equal(from, to,
                     TAPER_TEXT("size {} does not broadcast to {} (dimension {} from the end)"),
                     D(i)))
      return false;
  }
  return true;
}

}  // namespace taper::internal
