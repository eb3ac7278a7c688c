// Derivatives of linear algebra, written with operators that have derivatives themselves. With G
// the gradient of a result, they follow from
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
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/matmul.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/reduction.h"
#include "taper/exporter/eager/ops/view.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::derivatives {
namespace {

/// The lower half of x with half of its diagonal.
Tensor lower_with_half_diagonal(const Tensor& x, Location here) {
  return mul(add(tril(x, 0, here), tril(x, -1, here), 1, here), 0.5, here);
}

/// The gradient of A in A X = B (X A = B with `left` false), from that of B.
Tensor of_matrix(const Tensor& db, const Tensor& x, bool left, Location here) {
  return neg(left ? matmul(db, mT(x, here), here) : matmul(mT(x, here), db, here), here);
}

/// L with its diagonal of ones, out of both factors.
Tensor lower_of(const Tensor& lu, Location here) {
  return add(tril(lu, -1, here), eye(lu.size(-1), lu.dtype(), here), 1, here);
}

/// A X = B without complaint about a singular A.
Tensor solved(const Tensor& a, const Tensor& b, bool left, Location here) {
  return std::get<0>(linalg_solve_ex(a, b, left, false, here));
}

}  // namespace

TAPER_DERIVATIVE(linalg_solve_triangular, "self", "result") {
  const Location here = saved.here();
  const bool upper = saved.boolean<"upper">(), left = saved.boolean<"left">(),
             unit = saved.boolean<"unitriangular">();
  const Tensor a = saved.tensor<"self">();
  const Tensor db = linalg_solve_triangular(mT(a, here), dy, !upper, left, unit, here);
  if (!saved.needs<"self">()) return {{}, db};
  const Tensor da = of_matrix(db, saved.result(), left, here);
  return {upper ? triu(da, unit ? 1 : 0, here) : tril(da, unit ? -1 : 0, here), db};
}

// With A = P L U square, dL U + L dU = P^T dA: L^-1 P^T dA U^-1 = L^-1 dL + dU U^-1, a lower and an
// upper half. Columns of A behind them give U2 = L^-1 P^T A2, rows below them L2 = P^T A2 U^-1.
TAPER_DERIVATIVE(linalg_lu_factor_ex, "only result0", "result0", "result1") {
  const Location here = saved.here();
  if (!dy.defined()) return {Tensor()};
  const Tensor lu = saved.result(0), pivots = saved.result(1);
  const Dim m = lu.size(-2), n = lu.size(-1);
  const bool wide = proves_less(m, n), tall = proves_less(n, m);
  if (!wide && !tall && !proves_equal(m, n))
    throw EagerError(here, "linalg_lu_factor_ex: the derivative must know which size of A " +
                               to_string(lu.sizes()) + " is the larger");
  const auto square = [&](const Tensor& t) {
    return wide ? narrow(t, -1, 0, m, here) : tall ? narrow(t, -2, 0, n, here) : t;
  };
  const auto rest = [&](const Tensor& t) {
    return wide ? narrow(t, -1, m, n - m, here) : narrow(t, -2, n, m - n, here);
  };
  const Tensor l = lower_of(square(lu), here), u = triu(square(lu), 0, here);
  Tensor lower = matmul(mT(l, here), tril(square(dy), -1, here), here);
  Tensor upper = matmul(triu(square(dy), 0, here), mT(u, here), here);
  if (wide) lower = sub(lower, matmul(rest(dy), mT(rest(lu), here), here), 1, here);
  if (tall) upper = sub(upper, matmul(mT(rest(lu), here), rest(dy), here), 1, here);
  const auto by_u = [&](const Tensor& t) {
    return linalg_solve_triangular(mT(u, here), t, false, false, false, here);
  };
  Tensor da = by_u(add(tril(lower, -1, here), triu(upper, 0, here), 1, here));
  if (wide) da = cat({da, rest(dy)}, -1, here);
  da = linalg_solve_triangular(mT(l, here), da, true, true, true, here);
  if (tall) da = cat({da, by_u(rest(dy))}, -2, here);
  return {exchange_rows(pivots, da, true, here)};
}

TAPER_DERIVATIVE(linalg_lu_solve, "LU", "pivots", "result") {
  const Location here = saved.here();
  const bool left = saved.boolean<"left">(), adjoint = saved.boolean<"adjoint">();
  const Tensor lu = saved.tensor<"LU">(), pivots = saved.tensor<"pivots">();
  const Tensor db = linalg_lu_solve(lu, pivots, dy, left, !adjoint, here);
  if (!saved.needs<"LU">()) return {{}, {}, db};
  Tensor da = of_matrix(db, saved.result(), left, here);
  if (adjoint) da = mT(da, here);
  // dL = P^T dA U^T, dU = L^T P^T dA
  const Tensor l = lower_of(lu, here), u = triu(lu, 0, here);
  const Tensor turned = exchange_rows(pivots, da, false, here);
  return {add(tril(matmul(turned, mT(u, here), here), -1, here),
              triu(matmul(mT(l, here), turned, here), 0, here), 1, here),
          {},
          db};
}

TAPER_DERIVATIVE(_linalg_solve_ex, "only result0", "A", "result") {
  const Location here = saved.here();
  if (!dy.defined()) return {{}, {}};
  const bool left = saved.boolean<"left">(),
             vector = is_vector_of(saved.sizes<"A">(), saved.sizes<"B">());
  const auto as_matrix = [&](const Tensor& t) { return vector ? unsqueeze(t, -1, here) : t; };
  const Tensor a = saved.tensor<"A">();
  const Tensor db = solved(mT(a, here), as_matrix(dy), left, here);
  return {saved.needs<"A">() ? of_matrix(db, as_matrix(saved.result()), left, here) : Tensor(),
          vector ? squeeze(db, -1, here) : db};
}

TAPER_DERIVATIVE(linalg_inv_ex, "only result0", "result") {
  const Location here = saved.here();
  if (!dy.defined()) return {Tensor()};
  const Tensor turned = mT(saved.result(), here);
  return {neg(matmul(turned, matmul(dy, turned, here), here), here)};
}

// The matrix of cofactors, det A A^-T. A zero on U's diagonal is replaced by a number that is small
// beside 1, in the determinant too: the cofactors are continuous.
TAPER_DERIVATIVE(_linalg_det, "only result0", "A", "result1", "result2") {
  const Location here = saved.here();
  if (!dy.defined()) return {Tensor()};
  Tensor lu = saved.result(1), pivots = saved.result(2);
  if (grad_enabled())  // which differentiates the factors, too
    std::tie(lu, pivots, std::ignore) = linalg_lu_factor_ex(saved.tensor<"A">(), false, here);
  const double small = lu.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                : std::numeric_limits<float>::epsilon();
  const Tensor zero = eq(diagonal(lu, 0, -2, -1, here), 0, here);
  lu =
      add(lu, diag_embed(mul(cast(zero, lu.dtype(), here), small, here), 0, -2, -1, here), 1, here);
  const Tensor scaled = mul(dy, determinant_by(lu, pivots, here), here);
  const Tensor diagonal = mul(unsqueeze(unsqueeze(scaled, -1, here), -1, here),
                              eye(lu.size(-1), lu.dtype(), here), here);
  return {linalg_lu_solve(lu, pivots, diagonal, true, true, here)};
}

TAPER_DERIVATIVE(linalg_cholesky_ex, "only result0", "result") {
  const Location here = saved.here();
  if (!dy.defined()) return {Tensor()};
  const bool upper = saved.boolean<"upper">();
  const Tensor l = upper ? mT(saved.result(), here) : saved.result(), lt = mT(l, here);
  const Tensor dl = upper ? mT(dy, here) : dy;
  const Tensor half = lower_with_half_diagonal(matmul(lt, dl, here), here);
  const Tensor da = linalg_solve_triangular(
      l, linalg_solve_triangular(lt, half, true, true, false, here), false, false, false, here);
  return {mul(add(da, mT(da, here), 1, here), 0.5, here)};
}

TAPER_DERIVATIVE(linalg_qr, "result0", "result1") {
  const Location here = saved.here();
  const Tensor q = saved.result(0), r = saved.result(1);
  const Tensor &dq = dys[0], &dr = dys[1];
  const Dims sizes = saved.sizes<"A">();
  const Dim m = sizes[sizes.size() - 2], n = sizes[sizes.size() - 1];
  const bool tall = !proves_less(m, n);
  if (saved.text<"mode">() == "r" || (saved.text<"mode">() == "complete" && proves_less(n, m)))
    throw EagerError(here, "linalg_qr: mode \"" + std::string(saved.text<"mode">()) +
                               "\" has no derivative for A " + to_string(sizes) +
                               ": use mode \"reduced\"");
  // what the factors of A's first columns get from each other: R dR^T - dQ^T Q
  Tensor both;
  const auto gather = [&](const Tensor& part) {
    both = both.defined() ? add(both, part, 1, here) : part;
  };
  if (tall) {
    if (dr.defined()) gather(matmul(dr, mT(r, here), here));
    if (dq.defined()) gather(neg(matmul(mT(q, here), dq, here), here));
    if (!both.defined()) return {Tensor()};
    const Tensor upper = triu(both, 0, here);
    // symmetric: the upper half in both halves
    const Tensor mirrored = add(upper, mT(triu(both, 1, here), here), 1, here);
    Tensor sum = matmul(q, mirrored, here);
    if (dq.defined()) sum = add(sum, dq, 1, here);
    return {linalg_solve_triangular(mT(r, here), sum, false, false, false, here)};
  }
  // the columns behind the first m follow from Q alone: Q dR
  if (dq.defined()) gather(matmul(mT(q, here), dq, here));
  if (dr.defined()) gather(neg(matmul(dr, mT(r, here), here), here));
  if (!both.defined()) return {Tensor()};
  const Tensor lower = tril(sub(both, mT(both, here), 1, here), 0, here);
  const Tensor square = narrow(r, -1, 0, m, here);
  const Tensor first =
      linalg_solve_triangular(mT(square, here), matmul(q, lower, here), false, false, false, here);
  const Tensor padded = constant_pad_nd(first, {Dim(0), n - m}, 0, here);
  return {dr.defined() ? add(padded, matmul(q, dr, here), 1, here) : padded};
}

// exp of [[A^T, G], [0, A^T]] has the gradient in the place of G (Higham, "Functions of matrices",
// 3.2).
TAPER_DERIVATIVE(linalg_matrix_exp, "self") {
  const Location here = saved.here();
  const Tensor turned = mT(saved.tensor<"self">(), here);
  const Dim n = turned.size(-1);
  const Tensor above = cat({turned, dy}, -1, here),
               below = cat({zeros_like(dy, {}, here), turned}, -1, here);
  const Tensor result = linalg_matrix_exp(cat({above, below}, -2, here), here);
  return {narrow(narrow(result, -2, 0, n, here), -1, n, n, here)};
}

}  // namespace taper::eager::derivatives
