// Derivatives of eigenvalues, singular values and pseudo-inverses, written with operators that have
// derivatives themselves. The formulas are those of M. Giles, "An extended collection of matrix
// derivative results for forward and reverse mode algorithmic differentiation", 2008, and of
// G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
// problems whose variables separate", 1973.
//
// Vectors have no sign (or phase) of their own. A loss must not depend on it; then the gradient is
// right. Where values are equal, vectors have no derivative, and the gradient is not finite.
#include "taper/exporter/eager/ops/matrices.h"

#include "taper/exporter/eager/complex/pair.h"
#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {
namespace {

Tensor row_of(const Tensor& x) { return unsqueeze(x, -2); }
Tensor column_of(const Tensor& x) { return unsqueeze(x, -1); }

/// The sum of those that are defined.
void accumulate(Tensor& sum, const Tensor& part) { sum = sum.defined() ? add(sum, part) : part; }

/// x(i, j) = values(j) - values(i).
Tensor differences(const Tensor& values) { return sub(row_of(values), column_of(values)); }
/// 1 / x outside of the diagonal, where x is 0; and 0 there.
Tensor inverse_beside_diagonal(const Tensor& x) {
  const Tensor identity = eye(x.size(-1), x.dtype());
  return sub(reciprocal(add(x, identity)), identity);
}

[[noreturn]] void refuse_without_vectors(const char* op, const char* option, const char* remedy) {
  throw EagerError(std::string(op) + ": with " + option +
                   "=False there are no vectors, which the derivative needs: use " + remedy);
}

}  // namespace

// With A = V diag(L) V^T: dA = V (diag(dL) + (V^T dV) / (L_j - L_i)) V^T
TAPER_DERIVATIVE(_linalg_eigh, "result0", "result1") {
  if (!saved.boolean<"compute_v">())
    refuse_without_vectors("_linalg_eigh", "compute_v", "linalg_eigvalsh");
  const Tensor values = saved.result(0), v = saved.result(1);
  Tensor inner;
  if (dys[0].defined()) accumulate(inner, diag_embed(dys[0]));
  if (dys[1].defined())
    accumulate(inner, mul(matmul(mT(v), dys[1]), inverse_beside_diagonal(differences(values))));
  if (!inner.defined()) return {Tensor()};
  return {matmul(matmul(v, inner), mT(v))};
}

// With A = U diag(S) V^T and E(i, j) = S_j² - S_i²:
//   dA = U (diag(dS) + skew(U^T dU) / E diag(S) + diag(S) skew(V^T dV) / E) V^T
//      + (I - U U^T) dU diag(1 / S) V^T + U diag(1 / S) dV^T (I - V V^T)
// where skew(x) = x - x^T. Vectors without a singular value have no gradient.
TAPER_DERIVATIVE(_linalg_svd, "result0", "result1", "result2") {
  if (!saved.boolean<"compute_uv">())
    refuse_without_vectors("_linalg_svd", "compute_uv", "linalg_svdvals");
  const Tensor s = saved.result(1);
  const Dim k = s.size(-1);
  const auto columns = [&](const Tensor& x) { return x.defined() ? narrow(x, -1, 0, k) : x; };
  const auto rows = [&](const Tensor& x) { return x.defined() ? narrow(x, -2, 0, k) : x; };
  const Tensor u = columns(saved.result(0)), vh = rows(saved.result(2));
  const Tensor du = columns(dys[0]), ds = dys[1], dvh = rows(dys[2]);
  if (!du.defined() && !ds.defined() && !dvh.defined()) return {Tensor()};

  Tensor inner;
  if (ds.defined()) accumulate(inner, diag_embed(ds));
  if (du.defined() || dvh.defined()) {
    const Tensor sums = add(row_of(s), column_of(s));
    const Tensor inverse = inverse_beside_diagonal(mul(differences(s), sums));
    const auto over_squares = [&](const Tensor& x) { return mul(sub(x, mT(x)), inverse); };
    if (du.defined()) accumulate(inner, mul(over_squares(matmul(mT(u), du)), row_of(s)));
    if (dvh.defined()) accumulate(inner, mul(over_squares(matmul(vh, mT(dvh))), column_of(s)));
  }
  Tensor da = matmul(matmul(u, inner), vh);
  if (du.defined() && !proves_equal(u.size(-2), k)) {
    const Tensor x = div(du, row_of(s));
    da = add(da, matmul(sub(x, matmul(u, matmul(mT(u), x))), vh));
  }
  if (dvh.defined() && !proves_equal(vh.size(-1), k)) {
    const Tensor x = div(dvh, column_of(s));
    da = add(da, matmul(u, sub(x, matmul(matmul(x, mT(vh)), vh))));
  }
  return {da};
}

namespace {

/// Complex numbers that lie as pairs in the last dimension.
Pair unpacked(const Tensor& pairs) { return {select(pairs, -1, 0), select(pairs, -1, 1)}; }
Pair adjoint_of(const Pair& matrix) { return conjugate({mT(matrix.re), mT(matrix.im)}); }
Pair matrix_product(const Pair& a, const Pair& b) {
  return product_of(a, b, [](const Tensor& x, const Tensor& y) { return matmul(x, y); });
}
/// The real part of A^-1 B. The complex system is a real one of twice the size.
Tensor real_part_of_solution(const Pair& a, const Pair& b) {
  const Tensor matrix = cat({cat({a.re, neg(a.im)}, -1), cat({a.im, a.re}, -1)}, -2);
  const Tensor x = std::get<0>(linalg_solve_ex(matrix, cat({b.re, b.im}, -2)));
  return narrow(x, -2, 0, a.re.size(-1));
}

}  // namespace

// With A V = V diag(L) and columns of length 1 in V, and conjugated differences of eigenvalues:
//   dA = V^-H (diag(dL) + (V^H dV - V^H V diag(Re(V^H dV))) / (L_j - L_i)*) V^H
TAPER_DERIVATIVE(taper_eig, "result0", "result1") {
  if (!saved.boolean<"compute_v">())
    refuse_without_vectors("taper::eig", "compute_v", "compute_v=True");
  const Pair values = unpacked(saved.result(0)), v = unpacked(saved.result(1));
  const Pair vh = adjoint_of(v);
  Pair inner;
  const auto accumulate_both = [&](const Pair& part) {
    accumulate(inner.re, part.re), accumulate(inner.im, part.im);
  };
  if (dys[0].defined()) {
    const Pair dl = unpacked(dys[0]);
    accumulate_both({diag_embed(dl.re), diag_embed(dl.im)});
  }
  if (dys[1].defined()) {
    const Pair turned = matrix_product(vh, unpacked(dys[1])), lengths = matrix_product(vh, v);
    const Tensor along = row_of(diagonal(turned.re, 0, -2, -1));
    const Pair across = turned - lengths * Pair{along, {}};
    // 1 / (x - iy) = (x + iy) / (x² + y²); on the diagonal x and y are 0
    const Tensor x = differences(values.re), y = differences(values.im);
    const Tensor squares = add(add(mul(x, x), mul(y, y)), eye(x.size(-1), x.dtype()));
    accumulate_both(across * Pair{div(x, squares), div(y, squares)});
  }
  if (!inner.re.defined()) return {Tensor()};
  return {real_part_of_solution(vh, matrix_product(inner, vh))};
}

namespace {

/// The gradient of A, given that of its pseudo-inverse P. Both forms are right; each has the
/// smaller matrices in the middle for one shape.
Tensor of_pseudo_inverse(const Tensor& dp, const Tensor& p, const Tensor& a) {
  const Tensor pt = mT(p), dpt = mT(dp);
  if (proves_at_least(a.size(-1), a.size(-2))) {
    const Tensor k = matmul(dpt, p), kpt = matmul(k, pt);
    const Tensor left = sub(kpt, matmul(matmul(a, p), kpt));
    return add(sub(left, mT(matmul(p, k))), matmul(matmul(pt, p), sub(dpt, matmul(k, a))));
  }
  const Tensor k = matmul(p, dpt), ptk = matmul(pt, k);
  const Tensor right = matmul(matmul(sub(dpt, matmul(a, k)), p), pt);
  return add(sub(right, mT(matmul(k, p))), sub(ptk, matmul(matmul(ptk, p), a)));
}

}  // namespace

TAPER_DERIVATIVE(linalg_pinv_atol_rtol_float, "self", "result") {
  return {of_pseudo_inverse(dy, saved.result(), saved.tensor<"self">())};
}
TAPER_DERIVATIVE(linalg_pinv_atol_rtol_tensor, "self", "result") {
  return {of_pseudo_inverse(dy, saved.result(), saved.tensor<"self">()), {}, {}};
}

// The solution is P B for the pseudo-inverse P of A. The residuals are the squares of R = A X - B,
// and X, which makes them smallest, counts as a constant. Results that are not computed have no
// elements.
TAPER_DERIVATIVE(linalg_lstsq, "self", "b", "result") {
  const Tensor a = saved.tensor<"self">();
  const bool vector = saved.sizes<"b">().size() < saved.sizes<"self">().size();
  const auto as_matrix = [&](const Tensor& t) { return vector ? column_of(t) : t; };
  const auto counts = [](const Tensor& dy) {
    return dy.defined() && !(dy.rank() == 1 && proves_equal(dy.size(0), Dim(0)));
  };
  const Tensor b = as_matrix(saved.tensor<"b">()), x = as_matrix(saved.result());
  Tensor da, db;
  if (counts(dys[0])) {
    const std::optional<double> rcond =
        saved.has<"rcond">() ? std::optional(saved.real<"rcond">()) : std::nullopt;
    const Tensor dx = as_matrix(dys[0]), p = linalg_pinv(a, std::nullopt, rcond);
    accumulate(da, of_pseudo_inverse(matmul(dx, mT(b)), p, a));
    accumulate(db, matmul(mT(p), dx));
  }
  if (counts(dys[1])) {
    const Tensor dr = mul(mul(sub(matmul(a, x), b), row_of(dys[1])), 2);
    accumulate(da, matmul(dr, mT(x)));
    accumulate(db, neg(dr));
  }
  if (counts(dys[3])) {
    const auto [u, s, vh] = linalg_svd(a, false);
    accumulate(da, matmul(mul(u, row_of(dys[3])), vh));
  }
  return {da, db.defined() && vector ? squeeze(db, -1) : db};
}

}  // namespace taper::eager::derivatives
