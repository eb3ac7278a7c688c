// Linear algebra: systems, inverses, determinants, factorisations. A matrix is the last two
// dimensions of a tensor; the dimensions before it are a batch. `info` (i32) has a number for each
// matrix; 0 means success. All functions take f32 and f64. Errors: a matrix that must be square and
// is not, sizes or dtypes that do not fit each other.
#pragma once
#include <optional>
#include <tuple>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// Solves A X = B for X, or X A = B with `left` false. A is (…, n, n). B is (…, n, k), and its
/// batch broadcasts with that of A. Or B is (…, n): vectors with the batch of A. Throws if a matrix
/// is singular.
inline Tensor linalg_solve(const Tensor& A, const Tensor& B, bool left = true,
                           Location here = Location::current()) {
  return call<ops::linalg_solve>(here, A, B, left);
}
/// (X, info). Does not throw: if a matrix is singular, info says which diagonal element of U is
/// zero, counted from 1, and X has no meaning.
inline std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B,
                                                  bool left = true, bool check_errors = false,
                                                  Location here = Location::current()) {
  return call<ops::linalg_solve_ex>(here, A, B, left, check_errors);
}
/// The inverse of a matrix, (…, n, n). Throws if the matrix is singular. To multiply by an inverse,
/// use `linalg_solve`: it is faster and more exact.
inline Tensor linalg_inv(const Tensor& A, Location here = Location::current()) {
  return call<ops::linalg_inv>(here, A);
}
/// (inverse, info), as `linalg_solve_ex`.
inline std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& A, bool check_errors = false,
                                                Location here = Location::current()) {
  return call<ops::linalg_inv_ex>(here, A, check_errors);
}
/// The determinants: (…, n, n) -> (…).
inline Tensor linalg_det(const Tensor& A, Location here = Location::current()) {
  return call<ops::linalg_det>(here, A);
}
/// (sign, log |det A|), both (…). The sign is -1, 0 or 1; the logarithm of 0 is minus infinity.
inline std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A,
                                                 Location here = Location::current()) {
  return call<ops::linalg_slogdet>(here, A);
}
/// log det self: (…, n, n) -> (…). NaN where the determinant is negative.
inline Tensor logdet(const Tensor& self, Location here = Location::current()) {
  return call<ops::logdet>(here, self);
}

/// (LU, pivots) of A = P L U. One matrix holds L below U; the ones on L's diagonal are left out.
/// Step k exchanged the rows k and pivots[k] - 1 (i32). Throws if U has a zero on its diagonal.
inline std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A,
                                                   Location here = Location::current()) {
  return call<ops::linalg_lu_factor>(here, A, true);
}
/// (LU, pivots, info), as `linalg_solve_ex`.
inline std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& A,
                                                              bool check_errors = false,
                                                              Location here = Location::current()) {
  return call<ops::linalg_lu_factor_ex>(here, A, true, check_errors);
}
/// Solves A X = B (X A = B with `left` false) with the factors that `linalg_lu_factor` made of A.
/// `adjoint` uses A^T instead of A.
inline Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B,
                              bool left = true, bool adjoint = false,
                              Location here = Location::current()) {
  return call<ops::linalg_lu_solve>(here, LU, pivots, B, left, adjoint);
}
/// Solves A X = B (X A = B with `left` false) for a triangular matrix A, which is `self`. Only its
/// upper or lower half is read. With `unitriangular` the diagonal is not read either and counts as
/// ones.
inline Tensor linalg_solve_triangular(const Tensor& self, const Tensor& B, bool upper,
                                      bool left = true, bool unitriangular = false,
                                      Location here = Location::current()) {
  return call<ops::linalg_solve_triangular>(here, self, B, upper, left, unitriangular);
}

/// The lower triangular L with L L^T = self; only the lower half of self is read. With `upper`: the
/// upper triangular U with U^T U = self; only the upper half is read. Throws if self is not
/// positive definite. The gradient is symmetric.
inline Tensor linalg_cholesky(const Tensor& self, bool upper = false,
                              Location here = Location::current()) {
  return call<ops::linalg_cholesky>(here, self, upper);
}
/// (L, info). Does not throw: if self is not positive definite, info is the order of the first
/// leading minor that is not positive, and L has no meaning.
inline std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& self, bool upper = false,
                                                     bool check_errors = false,
                                                     Location here = Location::current()) {
  return call<ops::linalg_cholesky_ex>(here, self, upper, check_errors);
}
/// The X with A X = self, where input2 is the factor of A that `linalg_cholesky` gives.
inline Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper = false,
                             Location here = Location::current()) {
  return call<ops::cholesky_solve>(here, self, input2, upper);
}
/// The inverse of a matrix from its factor, self, that `linalg_cholesky` gives.
inline Tensor cholesky_inverse(const Tensor& self, bool upper = false,
                               Location here = Location::current()) {
  return call<ops::cholesky_inverse>(here, self, upper);
}

/// (Q, R) with Q R = A. A is (…, m, n). The columns of Q (…, m, k) are orthogonal, and R (…, k, n)
/// is upper triangular. k is min(m, n), or m if `mode` is "complete"; with "r" Q is empty. R's
/// diagonal may be negative. Differentiable for "reduced", and for "complete" where m <= n.
inline std::tuple<Tensor, Tensor> linalg_qr(const Tensor& A, std::string_view mode = "reduced",
                                            Location here = Location::current()) {
  return call<ops::linalg_qr>(here, A, mode);
}
/// (a, tau) of A = H1 H2 … Hk R, with k = min(m, n) and reflections H = I - tau v v^T, as LAPACK
/// gives them. `a` (…, m, n) holds R on and above its diagonal, and below it the vectors v without
/// their first element, which is 1. tau is (…, k). There is no derivative.
inline std::tuple<Tensor, Tensor> geqrf(const Tensor& self, Location here = Location::current()) {
  return call<ops::geqrf>(here, self);
}
/// The first n columns of H1 H2 … Hk, from reflections in the columns of `input` (…, m, n) below
/// its diagonal and tau (…, k), with k <= n <= m. What lies above them is not read.
inline Tensor linalg_householder_product(const Tensor& input, const Tensor& tau,
                                         Location here = Location::current()) {
  return call<ops::linalg_householder_product>(here, input, tau);
}
/// Q other, or other Q with `left` false, for Q = H1 H2 … Hk from the results `self` and `tau` of
/// `geqrf`. `transpose` takes Q^T instead of Q.
inline Tensor ormqr(const Tensor& self, const Tensor& tau, const Tensor& other, bool left = true,
                    bool transpose = false, Location here = Location::current()) {
  return call<ops::ormqr>(here, self, tau, other, left, transpose);
}
/// (X, a copy of A) with A X = self: `linalg_solve_triangular` with the right side first.
/// `transpose` takes A^T instead of A.
inline std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A,
                                                   bool upper = true, bool transpose = false,
                                                   bool unitriangular = false,
                                                   Location here = Location::current()) {
  return call<ops::triangular_solve>(here, self, A, upper, transpose, unitriangular);
}
/// The inverse of self as a matrix, whose rows are the first `ind` dimensions and whose columns the
/// others. Both must have the same number of elements.
inline Tensor linalg_tensorinv(const Tensor& self, int64_t ind = 2,
                               Location here = Location::current()) {
  return call<ops::linalg_tensorinv>(here, self, ind);
}
/// X with tensordot(self, X, X.rank()) = other. First `dims` of self are moved to its end.
inline Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other,
                                 std::optional<Ints> dims = {},
                                 Location here = Location::current()) {
  return call<ops::linalg_tensorsolve>(here, self, other, dims);
}

/// The series Σ self^k / k! of (…, n, n), by scaling and squaring.
inline Tensor linalg_matrix_exp(const Tensor& self, Location here = Location::current()) {
  return call<ops::linalg_matrix_exp>(here, self);
}
/// self, (…, m, m), to the power n. For a negative n: the inverse to the power -n.
inline Tensor linalg_matrix_power(const Tensor& self, int64_t n,
                                  Location here = Location::current()) {
  return call<ops::linalg_matrix_power>(here, self, n);
}
/// The product of two or more matrices, in the order that takes the fewest multiplications. If
/// sizes are symbolic, matrices are multiplied from the left. The first and the last may be
/// vectors.
inline Tensor linalg_multi_dot(const std::vector<Tensor>& tensors,
                               Location here = Location::current()) {
  return call<ops::linalg_multi_dot>(here, tensors);
}
/// The same for one or more matrices, without vectors.
inline Tensor chain_matmul(const std::vector<Tensor>& matrices,
                           Location here = Location::current()) {
  return call<ops::chain_matmul>(here, matrices);
}
/// The sum of x y along `dim`, which is removed; x and y broadcast. Takes every dtype that `mul`
/// takes.
inline Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim = -1,
                            Location here = Location::current()) {
  return call<ops::linalg_vecdot>(here, x, y, dim);
}
/// Order 1: the largest sum of the absolute values of a column. Order infinity: that of a row.
/// Orders -1 and -infinity: the smallest sum. Orders 2 and -2: the largest and the smallest
/// singular value. Other orders are refused. `dim` names the rows and the columns of the matrices.
inline Tensor linalg_matrix_norm(const Tensor& self, Scalar ord, const Ints& dim = {-2, -1},
                                 bool keepdim = false, std::optional<DType> dtype = {},
                                 Location here = Location::current()) {
  return call<ops::linalg_matrix_norm>(here, self, ord, dim, keepdim, dtype);
}
/// "fro": the square root of the sum of squares. "nuc": the sum of the singular values.
inline Tensor linalg_matrix_norm(const Tensor& self, const char* ord = "fro",
                                 const Ints& dim = {-2, -1}, bool keepdim = false,
                                 std::optional<DType> dtype = {},
                                 Location here = Location::current()) {
  return call<ops::linalg_matrix_norm_str_ord>(here, self, ord, dim, keepdim, dtype);
}

/// A view of a diagonal of dim1 and dim2, as the last dimension. The diagonal lies `offset` above
/// the main one. Takes every dtype.
inline Tensor linalg_diagonal(const Tensor& A, int64_t offset = 0, int64_t dim1 = -2,
                              int64_t dim2 = -1, Location here = Location::current()) {
  return call<ops::linalg_diagonal>(here, A, offset, dim1, dim2);
}

}  // namespace taper::eager
