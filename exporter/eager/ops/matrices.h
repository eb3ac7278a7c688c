// Eigenvalues and singular values of matrices, and what is made of them: pseudo-inverses, ranks,
// least squares, norms. A matrix is the last two dimensions of a tensor; the dimensions before it
// are a batch. All functions take f32 and f64, and compute in f64. A matrix with infinities or NaN
// gives NaN. Errors: a matrix that must be square and is not, sizes or dtypes that do not fit.
#pragma once
#include <optional>
#include <tuple>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// (U, S, Vh) with U diag(S) Vh = A. A is (…, m, n). The k = min(m, n) singular values S (…, k) are
/// not negative, and descend. The columns of U and the rows of Vh are orthogonal and have length 1.
/// U is (…, m, m) and Vh (…, n, n), or (…, m, k) and (…, k, n) if `full_matrices` is false. The
/// signs of the vectors are open: a loss must not depend on them, nor on vectors without a singular
/// value.
inline std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, bool full_matrices = true,
                                                     Location here = Location::current()) {
  return call<ops::linalg_svd>(here, A, full_matrices, std::nullopt);
}
/// The singular values alone: (…, min(m, n)).
inline Tensor linalg_svdvals(const Tensor& A, Location here = Location::current()) {
  return call<ops::linalg_svdvals>(here, A, std::nullopt);
}
/// (U, S, V) with U diag(S) V^T = self. `some` is the opposite of `full_matrices`. Without
/// `compute_uv`, U (…, m, m) and V (…, n, n) are zeros.
inline std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some = true,
                                              bool compute_uv = true,
                                              Location here = Location::current()) {
  return call<ops::svd>(here, self, some, compute_uv);
}

/// (eigenvalues, eigenvectors) of symmetric matrices (…, n, n): the columns of the eigenvectors
/// (…, n, n) are orthogonal and have length 1; their signs are open. Eigenvalues (…, n) ascend.
/// Only the lower half is read, or with `UPLO` "U" the upper half.
inline std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view UPLO = "L",
                                              Location here = Location::current()) {
  return call<ops::linalg_eigh>(here, self, UPLO);
}
/// The eigenvalues alone.
inline Tensor linalg_eigvalsh(const Tensor& self, std::string_view UPLO = "L",
                              Location here = Location::current()) {
  return call<ops::linalg_eigvalsh>(here, self, UPLO);
}

/// (eigenvalues, eigenvectors) of any square matrices (…, n, n), which are f32. The results are
/// complex: (…, n) and (…, n, n). Each column of the eigenvectors has length 1. Eigenvalues have no
/// order, but those of a conjugate pair are neighbours. `eig` takes f64, too.
inline std::tuple<Tensor, Tensor> linalg_eig(const Tensor& self,
                                             Location here = Location::current()) {
  return call<ops::linalg_eig>(here, self);
}
/// The eigenvalues alone.
inline Tensor linalg_eigvals(const Tensor& self, Location here = Location::current()) {
  return call<ops::linalg_eigvals>(here, self);
}
/// The same as pairs of a real and an imaginary part: eigenvalues (…, n, 2) and eigenvectors
/// (…, n, n, 2). Without `compute_v` the second result has no elements.
inline std::tuple<Tensor, Tensor> eig(const Tensor& A, bool compute_v = true,
                                      Location here = Location::current()) {
  return call<ops::taper_eig>(here, A, compute_v);
}

/// The inverse of Moore and Penrose: (…, m, n) -> (…, n, m). Singular values count as zero up to
/// the larger of `atol` and `rtol` times the largest of them. `rtol` is the rounding error of the
/// dtype times max(m, n) if neither is given, and 0 if only a positive `atol` is. If `hermitian`,
/// self is symmetric, and its lower half is read.
inline Tensor linalg_pinv(const Tensor& self, std::optional<double> atol = {},
                          std::optional<double> rtol = {}, bool hermitian = false,
                          Location here = Location::current()) {
  return call<ops::linalg_pinv_atol_rtol_float>(here, self, atol, rtol, hermitian);
}
/// The same with tolerances for each matrix. They broadcast with the batch; either may be
/// undefined.
inline Tensor linalg_pinv(const Tensor& self, const Tensor& atol, const Tensor& rtol,
                          bool hermitian = false, Location here = Location::current()) {
  return call<ops::linalg_pinv_atol_rtol_tensor>(here, self, atol, rtol, hermitian);
}
/// `linalg_pinv` with rtol = rcond.
inline Tensor pinverse(const Tensor& self, double rcond = 1e-15,
                       Location here = Location::current()) {
  return call<ops::pinverse>(here, self, rcond);
}
/// How many singular values are above the tolerance of `linalg_pinv`: (…), i64.
inline Tensor linalg_matrix_rank(const Tensor& self, std::optional<double> atol = {},
                                 std::optional<double> rtol = {}, bool hermitian = false,
                                 Location here = Location::current()) {
  return call<ops::linalg_matrix_rank_atol_rtol_float>(here, self, atol, rtol, hermitian);
}
/// The same with tolerances for each matrix.
inline Tensor linalg_matrix_rank(const Tensor& self, const Tensor& atol, const Tensor& rtol,
                                 bool hermitian = false, Location here = Location::current()) {
  return call<ops::linalg_matrix_rank_atol_rtol_tensor>(here, self, atol, rtol, hermitian);
}

/// (solution, residuals, rank, singular values) of least squares: the solution (…, n, k) is the
/// shortest X with the smallest |self X - b|, for self (…, m, n) and b (…, m, k) or (…, m).
/// Singular values count as zero up to `rcond` times the largest; the default is that of
/// `linalg_pinv`.
///
///   driver    gelsy (the default), gelsd, gelss; gels needs full rank, and is faster
///   residuals Σ (self X - b)², (…, k), where m > n; (0) with gelsy, or if a rank is below n
///   rank      (…), i64; (0) with gels
///   singular values  (…, min(m, n)) with gelsd and gelss, else (0)
inline std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(
    const Tensor& self, const Tensor& b, std::optional<double> rcond = {},
    std::optional<std::string_view> driver = {}, Location here = Location::current()) {
  return call<ops::linalg_lstsq>(here, self, b, rcond, driver);
}

/// (P, L, U) with P L U = A. A is (…, m, n) and k = min(m, n). P (…, m, m) exchanges rows, L
/// (…, m, k) is lower triangular with ones on its diagonal, and U (…, k, n) upper triangular.
inline std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A,
                                                    Location here = Location::current()) {
  return call<ops::linalg_lu>(here, A, true);
}
/// The same from the results of `linalg_lu_factor`. What is not unpacked has no elements.
inline std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots,
                                                    bool unpack_data = true,
                                                    bool unpack_pivots = true,
                                                    Location here = Location::current()) {
  return call<ops::lu_unpack>(here, LU_data, LU_pivots, unpack_data, unpack_pivots);
}
/// `linalg_lu_solve` with the right side first.
inline Tensor lu_solve(const Tensor& self, const Tensor& LU_data, const Tensor& LU_pivots,
                       Location here = Location::current()) {
  return call<ops::lu_solve>(here, self, LU_data, LU_pivots);
}

/// The sum of the singular values.
inline Tensor nuclear_norm(const Tensor& self, bool keepdim = false,
                           Location here = Location::current()) {
  return call<ops::nuclear_norm>(here, self, keepdim);
}
/// The same of the matrices in the two dimensions that `dim` names.
inline Tensor nuclear_norm(const Tensor& self, const Ints& dim, bool keepdim = false,
                           Location here = Location::current()) {
  return call<ops::nuclear_norm_dim>(here, self, dim, keepdim);
}
/// How much a matrix enlarges relative errors: the norm of order p of self times that of its
/// inverse. Orders are 2 (the default), -2, 1, -1, infinity and -infinity. With 2 and -2, matrices
/// need not be square.
inline Tensor linalg_cond(const Tensor& self, std::optional<Scalar> p = {},
                          Location here = Location::current()) {
  return call<ops::linalg_cond>(here, self, p);
}
/// The same for the norms "fro" and "nuc".
inline Tensor linalg_cond(const Tensor& self, const char* p, Location here = Location::current()) {
  return call<ops::linalg_cond_p_str>(here, self, p);
}

}  // namespace taper::eager
