// Requirements that many rules share.
#pragma once
#include "taper/kernels/rule.h"

namespace taper::internal {

/// Requires that a and b have the same rank and extents. `ranks` and `extents` are texts with two
/// `{}`, for those of a and of b.
template <class D>
bool same_sizes(Facts<D>& facts, const TensorType<D>& a, const TensorType<D>& b, const char* ranks,
                const char* extents) {
  if (!facts.require(a.rank == b.rank, ranks, a.rank, b.rank)) return false;
  for (int i = 0; i < a.rank; ++i)
    if (!facts.equal(a[i], b[i], extents)) return false;
  return true;
}

/// A list of sizes names no more dimensions than a tensor may have.
template <class D>
bool has_possible_rank(Facts<D>& facts, const DimList<D>& sizes) {
  return facts.require(sizes.size() <= max_rank,
                       TAPER_TEXT("{} dimensions are more than the {} that a tensor may have"),
                       sizes.size(), max_rank);
}

/// A vector of `count` elements and dtype `dtype`, or absent.
template <class D>
bool optional_vector(Facts<D>& facts, const TensorType<D>* v, const D& count, DType dtype,
                     const char* rank_text, const char* count_text, const char* dtype_text) {
  return v == nullptr ||
         (facts.require(v->rank == 1, rank_text, v->rank) &&
          facts.equal((*v)[0], count, count_text) && facts.require(v->dtype == dtype, dtype_text));
}

/// Requires that the bytes of a result fit into 64 bits. If the sizes of a result are numbers among
/// the arguments, and not extents of a tensor, a call could otherwise ask for any amount of memory.
template <class D>
bool has_countable_bytes(Facts<D>& facts, const TensorType<D>& t) {
  D bytes(size_bytes(t.dtype));
  for (int i = 0; i < t.rank; ++i) bytes = bytes * facts.max(t[i], D(1));
  return facts.at_least(bytes, D(0), TAPER_TEXT("the result is too large to count its bytes"));
}

/// Requires a dtype to which a number can be converted. The host makes complex numbers of two real
/// ones.
template <class D>
bool takes_numbers(Facts<D>& facts, DType dtype) {
  return facts.require(!is_complex(dtype), TAPER_TEXT("is computed on real numbers, not on c64"));
}
/// Requires that elements of one dtype can become elements of another. Complex ones only stay.
template <class D>
bool is_castable(Facts<D>& facts, DType from, DType to) {
  return from == to || (takes_numbers(facts, from) && takes_numbers(facts, to));
}

/// Whether tensors of indices may have this dtype.
constexpr bool is_index(DType dtype) { return dtype == DType::i64 || dtype == DType::i32; }

}  // namespace taper::internal
