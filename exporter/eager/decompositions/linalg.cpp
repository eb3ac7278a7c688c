// Linear algebra built on factorisations: solutions, inverses, norms, and products of several
// matrices.
#include "taper/exporter/eager/ops/linalg.h"

#include <cmath>
#include <limits>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/factors.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/singular_values.h"

namespace taper::eager {

bool is_vector_of(const Dims& a, const Dims& b) {
  if (b.size() == 1) return true;
  if (b.size() + 1 != a.size()) return false;
  for (size_t i = 0; i < b.size(); ++i)
    if (!proves_equal(a[i], b[i])) return false;
  return true;
}

// Solves with L = U = 1, which only exchanges rows.
Tensor exchange_rows(const Tensor& pivots, const Tensor& y, bool back) {
  const Dim rows = y.size(-2), count = pivots.size(-1);
  Dims sizes = pivots.sizes();
  Tensor all = pivots;
  if (!proves_equal(rows, count)) {  // the rows behind them stay
    sizes.back() = rows - count;
    const Tensor behind = add(narrow(decompositions::positions(rows), 0, count, rows - count), 1);
    all = cat({pivots, expand(cast(behind, pivots.dtype()), sizes)}, -1);
  }
  sizes.back() = rows;
  sizes.push_back(rows);
  const Tensor identity = expand(eye(rows, y.dtype()), sizes);
  return linalg_lu_solve(identity, all, y, true, back);
}

Tensor sign_of_exchanges(const Tensor& pivots, DType dtype) {
  const Tensor unmoved = add(decompositions::positions(pivots.size(-1)), 1);
  const Tensor count = sum(ne(pivots, unmoved), {-1});
  return cast(add(mul(remainder(count, 2), -2), 1), dtype);
}

Tensor determinant_by(const Tensor& lu, const Tensor& pivots) {
  const Tensor product = prod(diagonal(lu, 0, -2, -1), -1);
  return mul(product, sign_of_exchanges(pivots, lu.dtype()));
}

namespace decompositions {
namespace {

[[noreturn]] void refuse(const char* op, const std::string& what, const Tensor& got) {
  throw EagerError(std::string(op) + ": " + what + ", got " + taper::name_of(got.dtype()) + " " +
                   to_string(got.sizes()));
}

/// Throws unless `t`, the argument `name`, is a floating square matrix or a batch of them.
void need_square(const Tensor& t, const char* op, const char* name) {
  if (t.rank() < 2 || proves_different(t.size(-2), t.size(-1)))
    refuse(op, std::string(name) + " must be a square matrix or a batch of them", t);
  if (!is_floating(t.dtype())) refuse(op, std::string(name) + " must have a floating dtype", t);
}

struct Factors {
  Tensor lu, pivots, info;
};
Factors factors_of(const Tensor& a, bool check_errors) {
  const auto [lu, pivots, info] = call<ops::linalg_lu_factor_ex>(a, true, check_errors);
  return {lu, pivots, info};
}

}  // namespace

// ---- systems and inverses ----

TAPER_DECOMPOSITION(linalg_lu_factor) {
  const auto [lu, pivots, info] =
      call<ops::linalg_lu_factor_ex>(a.tensor<"A">(), a.boolean<"pivot">(), true);
  return {lu, pivots};
}

// A vector B counts as a matrix with one column.
TAPER_DECOMPOSITION_ROUNDED_ONCE(_linalg_solve_ex) {
  const Tensor matrix = a.tensor<"A">(), b = a.tensor<"B">();
  const bool left = a.boolean<"left">();
  need_square(matrix, "_linalg_solve_ex", "A");
  if (b.dtype() != matrix.dtype())
    refuse("_linalg_solve_ex",
           std::string("B must have the dtype of A, ") + taper::name_of(matrix.dtype()), b);
  const bool vector = is_vector_of(matrix.sizes(), b.sizes());
  if (vector && !left) refuse("_linalg_solve_ex", "with left=False B must be a matrix", b);
  if (b.rank() == 0) refuse("_linalg_solve_ex", "B must be a vector or a matrix", b);
  const Factors f = factors_of(matrix, a.boolean<"check_errors">());
  const Tensor x =
      call<ops::linalg_lu_solve>(f.lu, f.pivots, vector ? unsqueeze(b, -1) : b, left, false);
  return {vector ? squeeze(x, -1) : x, f.lu, f.pivots, f.info};
}
TAPER_DECOMPOSITION(linalg_solve_ex) {
  const auto [x, lu, pivots, info] = call<ops::_linalg_solve_ex>(
      a.tensor<"A">(), a.tensor<"B">(), a.boolean<"left">(), a.boolean<"check_errors">());
  return {x, info};
}
TAPER_DECOMPOSITION(linalg_solve) {
  const auto [x, lu, pivots, info] =
      call<ops::_linalg_solve_ex>(a.tensor<"A">(), a.tensor<"B">(), a.boolean<"left">(), true);
  return {x};
}

TAPER_DECOMPOSITION_ROUNDED_ONCE(linalg_inv_ex) {
  const Tensor matrix = a.tensor<"A">();
  need_square(matrix, "linalg_inv_ex", "A");
  const Factors f = factors_of(matrix, a.boolean<"check_errors">());
  const Tensor identity = eye(matrix.size(-1), matrix.dtype());
  return {call<ops::linalg_lu_solve>(f.lu, f.pivots, identity, true, false), f.info};
}
TAPER_DECOMPOSITION(linalg_inv) {
  const auto [inverse, info] = call<ops::linalg_inv_ex>(a.tensor<"A">(), true);
  return {inverse};
}

// ---- determinants: the product of U's diagonal, negated for each exchange of rows. As in PyTorch,
// which transposes a row-major matrix, the factors are those of the transposed matrix ----

TAPER_DECOMPOSITION_ROUNDED_ONCE(_linalg_det) {
  const Tensor matrix = a.tensor<"A">();
  need_square(matrix, "_linalg_det", "A");
  const Factors f = factors_of(mT(matrix), false);
  return {determinant_by(f.lu, f.pivots), f.lu, f.pivots};
}
TAPER_DECOMPOSITION(linalg_det) {
  const auto [determinant, lu, pivots] = call<ops::_linalg_det>(a.tensor<"A">());
  return {determinant};
}
TAPER_DECOMPOSITION_ROUNDED_ONCE(_linalg_slogdet) {
  const Tensor matrix = a.tensor<"A">();
  need_square(matrix, "_linalg_slogdet", "A");
  const Factors f = factors_of(mT(matrix), false);
  const Tensor diagonal_of_u = diagonal(f.lu, 0, -2, -1);
  const Tensor sign_of_u = prod(sign(diagonal_of_u), -1);
  return {mul(sign_of_u, sign_of_exchanges(f.pivots, matrix.dtype())),
          sum(log(abs(diagonal_of_u)), {-1}), f.lu.detach(), f.pivots};
}
TAPER_DECOMPOSITION(linalg_slogdet) {
  const auto [sign, logarithm, lu, pivots] = call<ops::_linalg_slogdet>(a.tensor<"A">());
  return {sign, logarithm};
}
TAPER_DECOMPOSITION(logdet) {
  const auto [sign, logarithm, lu, pivots] = call<ops::_linalg_slogdet>(a.tensor<"self">());
  return {masked_fill(logarithm, eq(sign, -1), std::numeric_limits<double>::quiet_NaN())};
}

// ---- by Cholesky's factor ----

TAPER_DECOMPOSITION(linalg_cholesky) {
  const auto [l, info] =
      call<ops::linalg_cholesky_ex>(a.tensor<"self">(), a.boolean<"upper">(), true);
  return {l};
}
// Solves L L^T X = B, or L^T L X = B if `upper`.
TAPER_DECOMPOSITION_ROUNDED_ONCE(cholesky_solve) {
  const Tensor b = a.tensor<"self">(), factor = a.tensor<"input2">();
  const bool upper = a.boolean<"upper">();
  need_square(factor, "cholesky_solve", "input2");
  const auto solved = [&](const Tensor& right, bool turned) {
    return linalg_solve_triangular(turned ? mT(factor) : factor, right, turned != upper);
  };
  return {solved(solved(b, upper), !upper)};
}
TAPER_DECOMPOSITION_ROUNDED_ONCE(cholesky_inverse) {
  const Tensor factor = a.tensor<"self">();
  need_square(factor, "cholesky_inverse", "self");
  // Eager looks at the elements; a trace does not know them.
  if (!factor.is_traced() && any(eq(diagonal(factor, 0, -2, -1), 0)).item<bool>())
    refuse("cholesky_inverse", "the diagonal of self has a zero: there is no inverse", factor);
  return {cholesky_solve(eye(factor.size(-1), factor.dtype()), factor, a.boolean<"upper">())};
}

// ---- products ----

// By repeated squaring, of self or of its inverse.
TAPER_DECOMPOSITION(linalg_matrix_power) {
  const Tensor self = a.tensor<"self">();
  const int64_t n = a.integer<"n">();
  if (self.rank() < 2 || proves_different(self.size(-2), self.size(-1)))
    refuse("linalg_matrix_power", "self must be a square matrix or a batch of them", self);
  if (n == 0) return {clone(expand(eye(self.size(-1), self.dtype()), self.sizes()))};
  if (n == 1) return {clone(self)};
  Tensor square = n < 0 ? linalg_inv(self) : self, power;
  // the order of PyTorch, which the rounding shows
  if (n == 3 || n == -3) return {matmul(matmul(square, square), square)};
  for (uint64_t left = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);;) {
    if (left % 2 == 1) power = power.defined() ? matmul(power, square) : square;
    left /= 2;
    if (left == 0) return {power};
    square = matmul(square, square);
  }
}

namespace {

/// The product of the matrices first … last, split where `split` says.
Tensor product(const std::vector<Tensor>& matrices, const std::vector<std::vector<size_t>>& split,
               size_t first, size_t last) {
  if (first == last) return matrices[first];
  const size_t at = split[first][last];
  return mm(product(matrices, split, first, at), product(matrices, split, at + 1, last));
}

/// split[first][last] is where the product of the matrices first … last is split, so that the
/// number of multiplications is smallest (Cormen et al., "Introduction to algorithms", 14.2).
/// Products of symbolic sizes cannot be compared; then the matrices are multiplied from the left.
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

// The first may be a vector, which is a row, and the last a vector, which is a column.
TAPER_DECOMPOSITION(linalg_multi_dot) {
  std::vector<Tensor> matrices = a.tensors<"tensors">();
  if (matrices.size() < 2)
    throw EagerError("linalg_multi_dot: tensors must be two or more, got " +
                     std::to_string(matrices.size()));
  Tensor &front = matrices.front(), &back = matrices.back();
  const bool row = front.rank() == 1, column = back.rank() == 1;
  if (row) front = unsqueeze(front, 0);
  if (column) back = unsqueeze(back, 1);
  for (size_t i = 0; i < matrices.size(); ++i)
    if (matrices[i].rank() != 2)
      refuse("linalg_multi_dot",
             "tensors must be matrices, only the first and the last may be vectors; element " +
                 std::to_string(i) + " is not",
             matrices[i]);
  Tensor result = product(matrices, best_split(matrices), 0, matrices.size() - 1);
  if (column) result = squeeze(result, 1);
  if (row) result = squeeze(result, 0);
  return {result};
}
TAPER_DECOMPOSITION(chain_matmul) {
  const std::vector<Tensor> matrices = a.tensors<"matrices">();
  for (const Tensor& t : matrices)
    if (t.rank() != 2) refuse("chain_matmul", "matrices must have 2 dimensions each", t);
  if (matrices.size() == 1) return {clone(matrices[0])};
  return {linalg_multi_dot(matrices)};
}

TAPER_DECOMPOSITION(linalg_vecdot) {
  const Tensor x = a.tensor<"x">(), y = a.tensor<"y">();
  if (!is_floating(x.dtype())) refuse("linalg_vecdot", "x must have a floating dtype", x);
  if (x.dtype() != y.dtype())
    refuse("linalg_vecdot", std::string("y must have the dtype of x, ") + taper::name_of(x.dtype()),
           y);
  if (x.rank() == 1 && y.rank() == 1) {
    checked_dim(a.integer<"dim">(), 1, "linalg_vecdot", x);
    if (proves_equal(x.size(0), y.size(0))) return {dot(x, y)};
  }
  return {sum(mul(x, y), {a.integer<"dim">()})};
}

// ---- norms ----

namespace {
/// The two dimensions of a matrix norm; throws unless self has them.
Ints matrix_dims(const Tensor& self, const Ints& dims) {
  if (dims.size() != 2)
    throw EagerError("linalg_matrix_norm: dim must name 2 dimensions, got " +
                     std::to_string(dims.size()));
  if (self.rank() < 2) refuse("linalg_matrix_norm", "self must have 2 dimensions or more", self);
  const int64_t rows = checked_dim(dims[0], self.rank(), "linalg_matrix_norm", self),
                columns = checked_dim(dims[1], self.rank(), "linalg_matrix_norm", self);
  if (rows == columns)
    throw EagerError("linalg_matrix_norm: dim must name two different dimensions, got " +
                     std::to_string(rows) + " twice");
  return {rows, columns};
}
}  // namespace

TAPER_DECOMPOSITION(linalg_matrix_norm) {
  const Tensor self = a.tensor<"self">();
  const Ints dims = matrix_dims(self, a.integers<"dim">());
  const double order = a.real<"ord">();
  if (std::abs(order) == 2)
    return {spectral_norm(self, order > 0 ? SpectralNorm::largest : SpectralNorm::smallest, dims,
                          a.boolean<"keepdim">(), dtype_of(a))};
  return {linalg_norm(self, Scalar(order), dims, a.boolean<"keepdim">(), dtype_of(a))};
}
TAPER_DECOMPOSITION(linalg_matrix_norm_str_ord) {
  const Tensor self = a.tensor<"self">();
  const Ints dims = matrix_dims(self, a.integers<"dim">());
  if (a.text<"ord">() == "nuc")
    return {spectral_norm(self, SpectralNorm::sum, dims, a.boolean<"keepdim">(), dtype_of(a))};
  if (a.text<"ord">() != "fro")
    throw EagerError("linalg_matrix_norm: ord must be \"fro\", \"nuc\" or a number, got \"" +
                     std::string(a.text<"ord">()) + "\"");
  return {vector_norm(self, 2, dims, a.boolean<"keepdim">(), dtype_of(a))};
}

}  // namespace decompositions
}  // namespace taper::eager
