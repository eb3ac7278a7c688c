// Derivatives of linear algebra, written with operators that have derivatives themselves. With G
// the gradient of a result, the formulas follow from
//
//   X = A^-1 B     dB = A^-T G, dA = -dB X^T
//   A = P L U      below
//   A = L L^T      I. Murray, "Differentiation of the Cholesky decomposition", 2016
//   A = Q R        S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra
//                  functions with application in optimum experimental design", 2010
#include "taper/exporter/eager/ops/linalg.h"

#include <limits>

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/factors.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::derivatives {
namespace {

/// The lower half of x with half of its diagonal.
Tensor lower_with_half_diagonal(const Tensor& x) { return mul(add(tril(x), tril(x, -1)), 0.5); }

/// The gradient of A in A X = B (or X A = B if `left` is false), given that of B.
Tensor of_matrix(const Tensor& db, const Tensor& x, bool left) {
  return neg(left ? matmul(db, mT(x)) : matmul(mT(x), db));
}

/// L with its diagonal of ones, from the matrix that holds both factors.
Tensor lower_of(const Tensor& lu) { return add(tril(lu, -1), eye(lu.size(-1), lu.dtype())); }

/// Solves A X = B without an error if A is singular.
Tensor solved(const Tensor& a, const Tensor& b, bool left) {
  return std::get<0>(linalg_solve_ex(a, b, left));
}

}  // namespace

TAPER_DERIVATIVE(linalg_solve_triangular, "self", "result") {
  const bool upper = saved.boolean<"upper">(), left = saved.boolean<"left">(),
             unit = saved.boolean<"unitriangular">();
  const Tensor a = saved.tensor<"self">();
  const Tensor db = linalg_solve_triangular(mT(a), dy, !upper, left, unit);
  if (!saved.needs<"self">()) return {{}, db};
  const Tensor da = of_matrix(db, saved.result(), left);
  return {upper ? triu(da, unit ? 1 : 0) : tril(da, unit ? -1 : 0), db};
}

// For a square A = P L U: dL U + L dU = P^T dA, so L^-1 P^T dA U^-1 = L^-1 dL + dU U^-1: a lower
// and an upper half. Further columns A2 of A give U2 = L^-1 P^T A2; further rows A2 give L2 = P^T
// A2 U^-1.
TAPER_DERIVATIVE(linalg_lu_factor_ex, "only result0", "result0", "result1") {
  if (!dy.defined()) return {Tensor()};
  const Tensor lu = saved.result(0), pivots = saved.result(1);
  const Dim m = lu.size(-2), n = lu.size(-1);
  const bool wide = proves_less(m, n), tall = proves_less(n, m);
  if (!wide && !tall && !proves_equal(m, n))
    throw EagerError("linalg_lu_factor_ex: the derivative must know which size of A " +
                     to_string(lu.sizes()) + " is the larger");
  const auto square = [&](const Tensor& t) {
    return wide ? narrow(t, -1, 0, m) : tall ? narrow(t, -2, 0, n) : t;
  };
  const auto rest = [&](const Tensor& t) {
    return wide ? narrow(t, -1, m, n - m) : narrow(t, -2, n, m - n);
  };
  const Tensor l = lower_of(square(lu)), u = triu(square(lu));
  Tensor lower = matmul(mT(l), tril(square(dy), -1));
  Tensor upper = matmul(triu(square(dy)), mT(u));
  if (wide) lower = sub(lower, matmul(rest(dy), mT(rest(lu))));
  if (tall) upper = sub(upper, matmul(mT(rest(lu)), rest(dy)));
  const auto by_u = [&](const Tensor& t) {
    return linalg_solve_triangular(mT(u), t, false, false);
  };
  Tensor da = by_u(add(tril(lower, -1), triu(upper)));
  if (wide) da = cat({da, rest(dy)}, -1);
  da = linalg_solve_triangular(mT(l), da, true, true, true);
  if (tall) da = cat({da, by_u(rest(dy))}, -2);
  return {exchange_rows(pivots, da, true)};
}

TAPER_DERIVATIVE(linalg_lu_solve, "LU", "pivots", "result") {
  const bool left = saved.boolean<"left">(), adjoint = saved.boolean<"adjoint">();
  const Tensor lu = saved.tensor<"LU">(), pivots = saved.tensor<"pivots">();
  const Tensor db = linalg_lu_solve(lu, pivots, dy, left, !adjoint);
  if (!saved.needs<"LU">()) return {{}, {}, db};
  Tensor da = of_matrix(db, saved.result(), left);
  if (adjoint) da = mT(da);
  // dL = P^T dA U^T, dU = L^T P^T dA
  const Tensor l = lower_of(lu), u = triu(lu);
  const Tensor turned = exchange_rows(pivots, da, false);
  return {add(tril(matmul(turned, mT(u)), -1), triu(matmul(mT(l), turned))), {}, db};
}

TAPER_DERIVATIVE(_linalg_solve_ex, "only result0", "A", "result", "result1", "result2") {
  if (!dy.defined()) return {{}, {}};
  const bool left = saved.boolean<"left">(),
             vector = is_vector_of(saved.sizes<"A">(), saved.sizes<"B">());
  const auto as_matrix = [&](const Tensor& t) { return vector ? unsqueeze(t, -1) : t; };
  const Tensor db =
      grad_enabled()  // then the factors must be differentiated, too
          ? solved(mT(saved.tensor<"A">()), as_matrix(dy), left)
          : linalg_lu_solve(saved.result(1), saved.result(2), as_matrix(dy), left, true);
  return {saved.needs<"A">() ? of_matrix(db, as_matrix(saved.result()), left) : Tensor(),
          vector ? squeeze(db, -1) : db};
}

TAPER_DERIVATIVE(linalg_inv_ex, "only result0", "result") {
  if (!dy.defined()) return {Tensor()};
  const Tensor turned = mT(saved.result());
  return {neg(matmul(turned, matmul(dy, turned)))};
}

// dy times the matrix of cofactors, det A A^-T. A zero on U's diagonal is replaced by a number that
// is small compared to 1, also in the determinant. This works because the cofactors are continuous.
TAPER_DERIVATIVE(_linalg_det, "only result0", "A", "result1", "result2") {
  if (!dy.defined()) return {Tensor()};
  Tensor lu = saved.result(1), pivots = saved.result(2);
  if (grad_enabled())  // then the factors must be differentiated, too
    std::tie(lu, pivots, std::ignore) = linalg_lu_factor_ex(mT(saved.tensor<"A">()));
  const double small = lu.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                : std::numeric_limits<float>::epsilon();
  const Tensor zero = eq(diagonal(lu, 0, -2, -1), 0);
  lu = add(lu, diag_embed(mul(cast(zero, lu.dtype()), small)));
  const Tensor scaled = mul(dy, determinant_by(lu, pivots));
  const Tensor diagonal = mul(unsqueeze(unsqueeze(scaled, -1), -1), eye(lu.size(-1), lu.dtype()));
  return {linalg_lu_solve(lu, pivots, diagonal, true, false)};
}

TAPER_DERIVATIVE(linalg_cholesky_ex, "only result0", "result") {
  if (!dy.defined()) return {Tensor()};
  const bool upper = saved.boolean<"upper">();
  const Tensor l = upper ? mT(saved.result()) : saved.result(), lt = mT(l);
  const Tensor dl = upper ? mT(dy) : dy;
  const Tensor half = lower_with_half_diagonal(matmul(lt, dl));
  const Tensor da =
      linalg_solve_triangular(l, linalg_solve_triangular(lt, half, true), false, false);
  return {mul(add(da, mT(da)), 0.5)};
}

TAPER_DERIVATIVE(linalg_qr, "result0", "result1") {
  const Tensor q = saved.result(0), r = saved.result(1);
  const Tensor &dq = dys[0], &dr = dys[1];
  const Dims sizes = saved.sizes<"A">();
  const Dim m = sizes[sizes.size() - 2], n = sizes[sizes.size() - 1];
  const bool tall = !proves_less(m, n);
  if (saved.text<"mode">() == "r" || (saved.text<"mode">() == "complete" && proves_less(n, m)))
    throw EagerError("linalg_qr: mode \"" + std::string(saved.text<"mode">()) +
                     "\" has no derivative for A " + to_string(sizes) + ": use mode \"reduced\"");
  // the term in which both factors of A's first columns meet: R dR^T - dQ^T Q
  Tensor both;
  const auto gather = [&](const Tensor& part) { both = both.defined() ? add(both, part) : part; };
  if (tall) {
    if (dr.defined()) gather(matmul(dr, mT(r)));
    if (dq.defined()) gather(neg(matmul(mT(q), dq)));
    if (!both.defined()) return {Tensor()};
    const Tensor upper = triu(both);
    // symmetric: the upper half is mirrored
    const Tensor mirrored = add(upper, mT(triu(both, 1)));
    Tensor sum = matmul(q, mirrored);
    if (dq.defined()) sum = add(sum, dq);
    return {linalg_solve_triangular(mT(r), sum, false, false)};
  }
  // columns after the first m depend only on Q: Q dR
  if (dq.defined()) gather(matmul(mT(q), dq));
  if (dr.defined()) gather(neg(matmul(dr, mT(r))));
  if (!both.defined()) return {Tensor()};
  const Tensor lower = tril(sub(both, mT(both)));
  const Tensor square = narrow(r, -1, 0, m);
  const Tensor first = linalg_solve_triangular(mT(square), matmul(q, lower), false, false);
  const Tensor padded = constant_pad_nd(first, {Dim(0), n - m});
  return {dr.defined() ? add(padded, matmul(q, dr)) : padded};
}

// In exp of [[A^T, G], [0, A^T]], the block at the place of G is the gradient (Higham, "Functions
// of matrices", 3.2).
TAPER_DERIVATIVE(linalg_matrix_exp, "self") {
  const Tensor turned = mT(saved.tensor<"self">());
  const Dim n = turned.size(-1);
  const Tensor above = cat({turned, dy}, -1), below = cat({zeros_like(dy), turned}, -1);
  const Tensor result = linalg_matrix_exp(cat({above, below}, -2));
  return {narrow(narrow(result, -2, 0, n), -1, n, n)};
}

}  // namespace taper::eager::derivatives
