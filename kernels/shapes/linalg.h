// Shape rules of factorisations of matrices, and of operators that solve systems with them. A
// matrix is the last two dimensions of a tensor; those before are a batch.
#pragma once
#include "taper/kernels/shapes/broadcast.h"
#include "taper/kernels/shapes/checks.h"

namespace taper {
namespace internal {

/// Whether an argument is a floating batch of matrices. `name` is a literal: how messages call it.
#define TAPER_IS_MATRIX(facts, t, name)                                                           \
  ((facts).require((t).rank >= 2,                                                                 \
                   TAPER_TEXT(name " must be a matrix or a batch of them, it has {} dimensions"), \
                   (t).rank) &&                                                                   \
   (facts).require(is_floating((t).dtype), TAPER_TEXT(name " must have a floating dtype")))

template <class D>
bool is_square(Facts<D>& facts, const TensorType<D>& t, const char* text) {
  return facts.equal(t[t.rank - 2], t[t.rank - 1], text);
}
/// Sets the sizes of `out` to the batch of `of`: its sizes without the last `own` dimensions.
template <class D>
void batch_of(const TensorType<D>& of, DType dtype, TensorType<D>& out, int own = 2) {
  out.like(of, dtype);
  out.rank -= own;
}

/// The solution of a system with a square matrix `a`: like `b`, with a batch that broadcasts with
/// that of `a`. `left`: A X = B, else X A = B.
template <class D>
bool solution(Facts<D>& facts, const TensorType<D>& a, const TensorType<D>& b, bool left,
              TensorType<D>& out) {
  if (!facts.require(a.dtype == b.dtype, TAPER_TEXT("the matrix and B have different dtypes")) ||
      !facts.equal(
          a[a.rank - 1], b[b.rank - (left ? 2 : 1)],
          left ? TAPER_TEXT("a matrix of {} rows does not fit B, which has {}")
               : TAPER_TEXT("with left=False a matrix of {} columns does not fit B, which has {}")))
    return false;
  TensorType<D> batch_a, batch_b;
  batch_of(a, a.dtype, batch_a), batch_of(b, b.dtype, batch_b);
  if (!broadcast(facts, out, batch_a, batch_b)) return false;
  out.dtype = b.dtype;
  out[out.rank++] = b[b.rank - 2];
  out[out.rank++] = b[b.rank - 1];
  return true;
}

}  // namespace internal

/// (…, m, n) -> L and U in one (…, m, n), the exchanges of rows (…, min(m, n)), info (…)
template <>
struct Rule<ops::linalg_lu_factor_ex> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& a, bool pivot, bool, TensorType<D>& lu,
                    TensorType<D>& pivots, TensorType<D>& info) {
    if (!TAPER_IS_MATRIX(facts, a, "A") ||
        !facts.require(pivot, TAPER_TEXT("pivot=False has no kernel, as in PyTorch on the CPU")))
      return false;
    lu.like(a);
    internal::batch_of(a, DType::i32, info);
    pivots = info;
    pivots[pivots.rank++] = facts.min(a[a.rank - 2], a[a.rank - 1]);
    return true;
  }
};

template <>
struct Rule<ops::linalg_lu_solve> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& lu, const TensorType<D>& pivots,
                    const TensorType<D>& b, bool left, bool, TensorType<D>& out) {
    if (!TAPER_IS_MATRIX(facts, lu, "LU") || !TAPER_IS_MATRIX(facts, b, "B") ||
        !internal::is_square(facts, lu, TAPER_TEXT("LU must be square, it is ({}, {})")) ||
        !facts.require(pivots.dtype == DType::i32, TAPER_TEXT("pivots must be i32")))
      return false;
    TensorType<D> expected;
    internal::batch_of(lu, DType::i32, expected, 1);
    return internal::same_sizes(facts, pivots, expected,
                                TAPER_TEXT("pivots have {} dimensions, LU asks for {}"),
                                TAPER_TEXT("pivots have extent {}, LU asks for {}")) &&
           internal::solution(facts, lu, b, left, out);
  }
};

template <>
struct Rule<ops::linalg_solve_triangular> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& b, bool,
                    bool left, bool, TensorType<D>& out) {
    return TAPER_IS_MATRIX(facts, self, "self") && TAPER_IS_MATRIX(facts, b, "B") &&
           internal::is_square(facts, self, TAPER_TEXT("self must be square, it is ({}, {})")) &&
           internal::solution(facts, self, b, left, out);
  }
};

template <>
struct Rule<ops::linalg_cholesky_ex> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, bool, bool, TensorType<D>& l,
                    TensorType<D>& info) {
    if (!TAPER_IS_MATRIX(facts, self, "self") ||
        !internal::is_square(facts, self, TAPER_TEXT("self must be square, it is ({}, {})")))
      return false;
    l.like(self);
    internal::batch_of(self, DType::i32, info);
    return true;
  }
};

/// (…, m, n) with k = min(m, n) -> "reduced": (…, m, k), (…, k, n); "complete": (…, m, m), (…, m,
/// n); "r": (0), (…, k, n)
template <>
struct Rule<ops::linalg_qr> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& a, std::string_view mode,
                    TensorType<D>& q, TensorType<D>& r) {
    const bool complete = mode == "complete";
    if (!TAPER_IS_MATRIX(facts, a, "A") ||
        !facts.require(complete || mode == "reduced" || mode == "r",
                       TAPER_TEXT("mode must be \"reduced\", \"complete\" or \"r\"")))
      return false;
    const D m = a[a.rank - 2], kept = complete ? m : facts.min(m, a[a.rank - 1]);
    q.like(a), r.like(a);
    q[q.rank - 1] = r[r.rank - 2] = kept;
    if (mode == "r") q.rank = 1, q[0] = D(0);
    return true;
  }
};

/// (…, m, n) -> R above the vectors of its reflections (…, m, n), their factors (…, min(m, n))
template <>
struct Rule<ops::geqrf> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, TensorType<D>& a,
                    TensorType<D>& tau) {
    if (!TAPER_IS_MATRIX(facts, self, "self")) return false;
    a.like(self);
    internal::batch_of(self, self.dtype, tau);
    tau[tau.rank++] = facts.min(self[self.rank - 2], self[self.rank - 1]);
    return true;
  }
};

template <>
struct Rule<ops::linalg_matrix_exp> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, TensorType<D>& out) {
    out.like(self);
    return TAPER_IS_MATRIX(facts, self, "self") &&
           internal::is_square(facts, self, TAPER_TEXT("self must be square, it is ({}, {})"));
  }
};

#undef TAPER_IS_MATRIX

}  // namespace taper
