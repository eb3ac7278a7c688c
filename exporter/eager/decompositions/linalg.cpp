// Linear algebra made of factorisations: what is solved, inverted or measured by them, and products
// of several matrices.
#include "taper/exporter/eager/ops/linalg.h"

#include <cmath>
#include <limits>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/factors.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/matmul.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/reduction.h"
#include "taper/exporter/eager/ops/view.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager {

bool is_vector_of(const Dims& a, const Dims& b) {
  if (b.size() == 1) return true;
  if (b.size() + 1 != a.size()) return false;
  for (size_t i = 0; i < b.size(); ++i)
    if (!proves_equal(a[i], b[i])) return false;
  return true;
}

// By the solution for L = U = 1.
Tensor exchange_rows(const Tensor& pivots, const Tensor& y, bool back, Location here) {
  const Dim rows = y.size(-2), count = pivots.size(-1);
  Dims sizes = pivots.sizes();
  Tensor all = pivots;
  if (!proves_equal(rows, count)) {  // the rows behind stay
    sizes.back() = rows - count;
    const Tensor behind = add(
        narrow(decompositions::positions(rows, here), 0, count, rows - count, here), 1, 1, here);
    all = cat({pivots, expand(cast(behind, pivots.dtype(), here), sizes, here)}, -1, here);
  }
  sizes.back() = rows;
  sizes.push_back(rows);
  const Tensor identity = expand(eye(rows, y.dtype(), here), sizes, here);
  return linalg_lu_solve(identity, all, y, true, back, here);
}

Tensor sign_of_exchanges(const Tensor& pivots, DType dtype, Location here) {
  const Tensor unmoved = add(decompositions::positions(pivots.size(-1), here), 1, 1, here);
  const Tensor count = sum(ne(pivots, unmoved, here), {-1}, false, {}, here);
  return cast(add(mul(remainder(count, 2, here), -2, here), 1, 1, here), dtype, here);
}

Tensor determinant_by(const Tensor& lu, const Tensor& pivots, Location here) {
  const Tensor product = prod(diagonal(lu, 0, -2, -1, here), -1, false, {}, here);
  return mul(product, sign_of_exchanges(pivots, lu.dtype(), here), here);
}

namespace decompositions {
namespace {

[[noreturn]] void refuse(const char* op, const std::string& what, const Tensor& got,
                         Location here) {
  throw EagerError(here, std::string(op) + ": " + what + ", got " + taper::name_of(got.dtype()) +
                             " " + to_string(got.sizes()));
}

/// Throws unless `t`, the argument `name`, is a floating square matrix or a batch of them.
void need_square(const Tensor& t, const char* op, const char* name, Location here) {
  if (t.rank() < 2 || proves_different(t.size(-2), t.size(-1)))
    refuse(op, std::string(name) + " must be a square matrix or a batch of them", t, here);
  if (!is_floating(t.dtype()))
    refuse(op, std::string(name) + " must have a floating dtype", t, here);
}

struct Factors {
  Tensor lu, pivots, info;
};
Factors factors_of(const Tensor& a, bool check_errors, Location here) {
  const auto [lu, pivots, info] = call<ops::linalg_lu_factor_ex>(here, a, true, check_errors);
  return {lu, pivots, info};
}

}  // namespace

// ---- systems and inverses ----

TAPER_DECOMPOSITION(linalg_lu_factor) {
  const auto [lu, pivots, info] =
      call<ops::linalg_lu_factor_ex>(a.here(), a.tensor<"A">(), a.boolean<"pivot">(), true);
  return {lu, pivots};
}

// A vector B stands for a matrix of one column.
TAPER_DECOMPOSITION_ROUNDED_ONCE(_linalg_solve_ex) {
  const Location here = a.here();
  const Tensor matrix = a.tensor<"A">(), b = a.tensor<"B">();
  const bool left = a.boolean<"left">();
  need_square(matrix, "_linalg_solve_ex", "A", here);
  if (b.dtype() != matrix.dtype())
    refuse("_linalg_solve_ex",
           std::string("B must have the dtype of A, ") + taper::name_of(matrix.dtype()), b, here);
  const bool vector = is_vector_of(matrix.sizes(), b.sizes());
  if (vector && !left) refuse("_linalg_solve_ex", "with left=False B must be a matrix", b, here);
  if (b.rank() == 0) refuse("_linalg_solve_ex", "B must be a vector or a matrix", b, here);
  const Factors f = factors_of(matrix, a.boolean<"check_errors">(), here);
  const Tensor x = call<ops::linalg_lu_solve>(here, f.lu, f.pivots,
                                              vector ? unsqueeze(b, -1, here) : b, left, false);
  return {vector ? squeeze(x, -1, here) : x, f.lu, f.pivots, f.info};
}
TAPER_DECOMPOSITION(linalg_solve_ex) {
  const auto [x, lu, pivots, info] = call<ops::_linalg_solve_ex>(
      a.here(), a.tensor<"A">(), a.tensor<"B">(), a.boolean<"left">(), a.boolean<"check_errors">());
  return {x, info};
}
TAPER_DECOMPOSITION(linalg_solve) {
  const auto [x, lu, pivots, info] = call<ops::_linalg_solve_ex>(
      a.here(), a.tensor<"A">(), a.tensor<"B">(), a.boolean<"left">(), true);
  return {x};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(linalg_inv_ex) {
  const Location here = a.here();
  const Tensor matrix = a.tensor<"A">();
  need_square(matrix, "linalg_inv_ex", "A", here);
  const Factors f = factors_of(matrix, a.boolean<"check_errors">(), here);
  const Tensor identity = eye(matrix.size(-1), matrix.dtype(), here);
  return {call<ops::linalg_lu_solve>(here, f.lu, f.pivots, identity, true, false), f.info};
}
TAPER_DECOMPOSITION(linalg_inv) {
  const auto [inverse, info] = call<ops::linalg_inv_ex>(a.here(), a.tensor<"A">(), true);
  return {inverse};
}

// ---- determinants: the product of U's diagonal, negated by each exchange of rows ----

TAPER_DECOMPOSITION_ROUNDED_ONCE(_linalg_det) {
  const Location here = a.here();
  const Tensor matrix = a.tensor<"A">();
  need_square(matrix, "_linalg_det", "A", here);
  const Factors f = factors_of(matrix, false, here);
  return {determinant_by(f.lu, f.pivots, here), f.lu, f.pivots};
}
TAPER_DECOMPOSITION(linalg_det) {
  const auto [determinant, lu, pivots] = call<ops::_linalg_det>(a.here(), a.tensor<"A">());
  return {determinant};
}
TAPER_DECOMPOSITION_ROUNDED_ONCE(_linalg_slogdet) {
  const Location here = a.here();
  const Tensor matrix = a.tensor<"A">();
  need_square(matrix, "_linalg_slogdet", "A", here);
  const Factors f = factors_of(matrix, false, here);
  const Tensor diagonal_of_u = diagonal(f.lu, 0, -2, -1, here);
  const Tensor sign_of_u = prod(sign(diagonal_of_u, here), -1, false, {}, here);
  return {mul(sign_of_u, sign_of_exchanges(f.pivots, matrix.dtype(), here), here),
          sum(log(abs(diagonal_of_u, here), here), {-1}, false, {}, here), f.lu, f.pivots};
}
TAPER_DECOMPOSITION(linalg_slogdet) {
  const auto [sign, logarithm, lu, pivots] = call<ops::_linalg_slogdet>(a.here(), a.tensor<"A">());
  return {sign, logarithm};
}
TAPER_DECOMPOSITION(logdet) {
  const auto [sign, logarithm, lu, pivots] =
      call<ops::_linalg_slogdet>(a.here(), a.tensor<"self">());
  return {masked_fill(logarithm, eq(sign, -1, a.here()), std::numeric_limits<double>::quiet_NaN(),
                      a.here())};
}

// ---- by Cholesky's factor ----

TAPER_DECOMPOSITION(linalg_cholesky) {
  const auto [l, info] =
      call<ops::linalg_cholesky_ex>(a.here(), a.tensor<"self">(), a.boolean<"upper">(), true);
  return {l};
}
// L L^T X = B, or with `upper` L^T L X = B.
TAPER_DECOMPOSITION_ROUNDED_ONCE(cholesky_solve) {
  const Location here = a.here();
  const Tensor b = a.tensor<"self">(), factor = a.tensor<"input2">();
  const bool upper = a.boolean<"upper">();
  need_square(factor, "cholesky_solve", "input2", here);
  const auto solved = [&](const Tensor& right, bool turned) {
    return linalg_solve_triangular(turned ? mT(factor, here) : factor, right, turned != upper, true,
                                   false, here);
  };
  return {solved(solved(b, upper), !upper)};
}
TAPER_DECOMPOSITION_ROUNDED_ONCE(cholesky_inverse) {
  const Location here = a.here();
  const Tensor factor = a.tensor<"self">();
  need_square(factor, "cholesky_inverse", "self", here);
  return {cholesky_solve(eye(factor.size(-1), factor.dtype(), here), factor, a.boolean<"upper">(),
                         here)};
}

// ---- products ----

// By squares: of the power, or of the inverse's.
TAPER_DECOMPOSITION(linalg_matrix_power) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">();
  const int64_t n = a.integer<"n">();
  if (self.rank() < 2 || proves_different(self.size(-2), self.size(-1)))
    refuse("linalg_matrix_power", "self must be a square matrix or a batch of them", self, here);
  if (n == 0)
    return {clone(expand(eye(self.size(-1), self.dtype(), here), self.sizes(), here), here)};
  if (n == 1) return {clone(self, here)};
  Tensor square = n < 0 ? linalg_inv(self, here) : self, power;
  for (uint64_t left = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);;) {
    if (left % 2 == 1) power = power.defined() ? matmul(power, square, here) : square;
    left /= 2;
    if (left == 0) return {power};
    square = matmul(square, square, here);
  }
}

namespace {

/// The product of the matrices [first, last), split where `split` says.
Tensor product(const std::vector<Tensor>& matrices, const std::vector<std::vector<size_t>>& split,
               size_t first, size_t last, Location here) {
  if (first == last) return matrices[first];
  const size_t at = split[first][last];
  return mm(product(matrices, split, first, at, here), product(matrices, split, at + 1, last, here),
            here);
}

/// Where the product of the matrices first … last is split, [first][last], so that all take the
/// fewest multiplications (Cormen et al., "Introduction to algorithms", 14.2); from the left where
/// sizes are symbols, whose products cannot be compared.
std::vector<std::vector<size_t>> best_split(const std::vector<Tensor>& matrices) {
  const size_t n = matrices.size();
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n));
  std::vector<double> sizes;
  bool known = true;
  for (const Tensor& t : matrices)
    known = known && t.size(0).is_constant() && t.size(1).is_constant();
  for (size_t first = 0; first < n; ++first)
    for (size_t last = first + 1; last < n; ++last) split[first][last] = last - 1;
  if (!known) return split;
  for (const Tensor& t : matrices) sizes.push_back(static_cast<double>(t.size(0).value()));
  sizes.push_back(static_cast<double>(matrices.back().size(1).value()));
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  for (size_t length = 1; length < n; ++length)
    for (size_t first = 0; first + length < n; ++first) {
      const size_t last = first + length;
      cost[first][last] = std::numeric_limits<double>::infinity();
      for (size_t at = last; at-- > first;) {
        const double all =
            cost[first][at] + cost[at + 1][last] + sizes[first] * sizes[at + 1] * sizes[last + 1];
        if (all < cost[first][last]) cost[first][last] = all, split[first][last] = at;
      }
    }
  return split;
}

}  // namespace

// The first may be a row, the last a column; both as vectors.
TAPER_DECOMPOSITION(linalg_multi_dot) {
  const Location here = a.here();
  std::vector<Tensor> matrices = a.tensors<"tensors">();
  if (matrices.size() < 2)
    throw EagerError(here, "linalg_multi_dot: tensors must be two or more, got " +
                               std::to_string(matrices.size()));
  Tensor &front = matrices.front(), &back = matrices.back();
  const bool row = front.rank() == 1, column = back.rank() == 1;
  if (row) front = unsqueeze(front, 0, here);
  if (column) back = unsqueeze(back, 1, here);
  for (size_t i = 0; i < matrices.size(); ++i)
    if (matrices[i].rank() != 2)
      refuse("linalg_multi_dot",
             "tensors must be matrices, only the first and the last may be vectors; element " +
                 std::to_string(i) + " is not",
             matrices[i], here);
  Tensor result = product(matrices, best_split(matrices), 0, matrices.size() - 1, here);
  if (column) result = squeeze(result, 1, here);
  if (row) result = squeeze(result, 0, here);
  return {result};
}
TAPER_DECOMPOSITION(chain_matmul) {
  const std::vector<Tensor> matrices = a.tensors<"matrices">();
  for (const Tensor& t : matrices)
    if (t.rank() != 2) refuse("chain_matmul", "matrices must have 2 dimensions each", t, a.here());
  if (matrices.size() == 1) return {clone(matrices[0], a.here())};
  return {linalg_multi_dot(matrices, a.here())};
}

TAPER_DECOMPOSITION(linalg_vecdot) {
  const Location here = a.here();
  const Tensor x = a.tensor<"x">(), y = a.tensor<"y">();
  if (!is_floating(x.dtype())) refuse("linalg_vecdot", "x must have a floating dtype", x, here);
  if (x.dtype() != y.dtype())
    refuse("linalg_vecdot", std::string("y must have the dtype of x, ") + taper::name_of(x.dtype()),
           y, here);
  if (x.rank() == 1 && y.rank() == 1) {
    checked_dim(a.integer<"dim">(), 1, "linalg_vecdot", x, here);
    if (proves_equal(x.size(0), y.size(0))) return {dot(x, y, here)};
  }
  return {sum(mul(x, y, here), {a.integer<"dim">()}, false, {}, here)};
}

// ---- norms ----

namespace {
/// The two dimensions of a matrix norm; throws unless self has them.
Ints matrix_dims(const Tensor& self, const Ints& dims, Location here) {
  if (dims.size() != 2)
    throw EagerError(
        here, "linalg_matrix_norm: dim must name 2 dimensions, got " + std::to_string(dims.size()));
  if (self.rank() < 2)
    refuse("linalg_matrix_norm", "self must have 2 dimensions or more", self, here);
  const int64_t rows = checked_dim(dims[0], self.rank(), "linalg_matrix_norm", self, here),
                columns = checked_dim(dims[1], self.rank(), "linalg_matrix_norm", self, here);
  if (rows == columns)
    throw EagerError(here, "linalg_matrix_norm: dim must name two different dimensions, got " +
                               std::to_string(rows) + " twice");
  return {rows, columns};
}
template <const Operator& op>
std::optional<DType> dtype_of(const Arguments<op>& a) {
  return a.template has<"dtype">() ? std::optional(a.template dtype<"dtype">()) : std::nullopt;
}
}  // namespace

TAPER_DECOMPOSITION(linalg_matrix_norm) {
  const Tensor self = a.tensor<"self">();
  const Ints dims = matrix_dims(self, a.integers<"dim">(), a.here());
  const double order = a.real<"ord">();
  if (std::abs(order) == 2)
    throw EagerError(a.here(),
                     "linalg_matrix_norm: ord 2 and -2 need singular values, which Taper does not "
                     "compute: ord must be 1, -1, inf, -inf or \"fro\"");
  return {linalg_norm(self, Scalar(order), dims, a.boolean<"keepdim">(), dtype_of(a), a.here())};
}
TAPER_DECOMPOSITION(linalg_matrix_norm_str_ord) {
  const Tensor self = a.tensor<"self">();
  const Ints dims = matrix_dims(self, a.integers<"dim">(), a.here());
  if (a.text<"ord">() != "fro")
    throw EagerError(a.here(), "linalg_matrix_norm: ord must be \"fro\" or a number, got \"" +
                                   std::string(a.text<"ord">()) +
                                   "\" (\"nuc\" needs singular values, which Taper does not "
                                   "compute)");
  return {vector_norm(self, 2, dims, a.boolean<"keepdim">(), dtype_of(a), a.here())};
}

}  // namespace decompositions
}  // namespace taper::eager
