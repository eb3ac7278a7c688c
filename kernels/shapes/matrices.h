// Shape rules of decompositions of matrices into eigenvalues and singular values. A matrix is the
// last two dimensions of a tensor; those before are a batch.
#pragma once
#include "taper/kernels/half_precision.h"
#include "taper/kernels/shapes/linalg.h"

namespace taper {
namespace internal {

/// Whether an argument is a floating matrix, or a batch of them.
template <class D>
bool is_matrix(Facts<D>& facts, const TensorType<D>& t) {
  return facts.require(t.rank >= 2,
                       TAPER_TEXT("A must be a matrix or a batch of them, it has {} dimensions"),
                       t.rank) &&
         facts.require(is_floating(t.dtype), TAPER_TEXT("A must have a floating dtype"));
}
/// A result that the arguments ask not to compute: it has no elements.
template <class D>
void no_elements(TensorType<D>& out) {
  out.rank = 1, out[0] = D(0);
}

}  // namespace internal

/// (…, n, n) -> eigenvalues (…, n), eigenvectors (…, n, n), or (0) without compute_v
template <>
struct Rule<ops::_linalg_eigh> {
  static constexpr HalfPrecision halves = HalfPrecision::refuse;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& a, std::string_view uplo, bool compute_v,
                    TensorType<D>& values, TensorType<D>& vectors) {
    if (!internal::is_matrix(facts, a) ||
        !internal::is_square(facts, a, TAPER_TEXT("A must be square, it is ({}, {})")) ||
        !facts.require(uplo == "L" || uplo == "U" || uplo == "l" || uplo == "u",
                       TAPER_TEXT("UPLO must be \"L\" or \"U\"")))
      return false;
    internal::batch_of(a, a.dtype, values, 1);
    vectors.like(a);
    if (!compute_v) internal::no_elements(vectors);
    return true;
  }
};

/// (…, m, n) with k = min(m, n) -> U (…, m, k), S (…, k), Vh (…, k, n). With full_matrices U is
/// (…, m, m) and Vh (…, n, n). Without compute_uv both are (0).
template <>
struct Rule<ops::_linalg_svd> {
  static constexpr HalfPrecision halves = HalfPrecision::refuse;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& a, bool full_matrices, bool compute_uv,
                    Maybe<std::string_view> driver, TensorType<D>& u, TensorType<D>& s,
                    TensorType<D>& vh) {
    if (!internal::is_matrix(facts, a) ||
        !facts.require(!driver.present,
                       TAPER_TEXT("driver must be None: it chooses among routines of a GPU")))
      return false;
    const D m = a[a.rank - 2], n = a[a.rank - 1], k = facts.min(m, n);
    internal::batch_of(a, a.dtype, s, 1);
    s[s.rank - 1] = k;
    u.like(a), vh.like(a);
    u[u.rank - 1] = full_matrices ? m : k;
    vh[vh.rank - 2] = full_matrices ? n : k;
    if (!compute_uv) internal::no_elements(u), internal::no_elements(vh);
    return true;
  }
};

/// (…, n, n) -> eigenvalues (…, n, 2), eigenvectors (…, n, n, 2), or (0) without compute_v
template <>
struct Rule<ops::taper_eig> {
  static constexpr HalfPrecision halves = HalfPrecision::refuse;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& a, bool compute_v, TensorType<D>& values,
                    TensorType<D>& vectors) {
    if (!internal::is_matrix(facts, a) ||
        !internal::is_square(facts, a, TAPER_TEXT("A must be square, it is ({}, {})")) ||
        !facts.require(a.rank < max_rank,
                       TAPER_TEXT("A has {} dimensions, and pairs need one more"), a.rank))
      return false;
    internal::batch_of(a, a.dtype, values, 1);
    values[values.rank++] = D(2);
    vectors.like(a);
    vectors[vectors.rank++] = D(2);
    if (!compute_v) internal::no_elements(vectors);
    return true;
  }
};

}  // namespace taper
