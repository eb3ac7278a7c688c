// The inverse of Moore and Penrose, ranks, and least squares. All of them count singular values
// that lie above a tolerance.
#include <algorithm>
#include <array>
#include <limits>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/singular_values.h"

namespace taper::eager::decompositions {
namespace {

/// Throws unless the matrices of a call may be `hermitian`, if it says that they are.
void need_matrices(const Tensor& t, std::string_view op, const char* name, bool hermitian) {
  need_matrix(t, op, name);
  if (hermitian && proves_different(t.size(-2), t.size(-1)))
    refuse_matrix(op, std::string(name) + " must be square if it is hermitian", t);
}

// ---- tolerances, in f64 ----

/// A singular value counts if it is above the absolute tolerance, and above the relative one times
/// the largest.
struct Tolerance {
  Tensor absolute, relative;
};

Tensor in_double(double value) { return scalar_tensor(value, DType::f64); }

/// The rounding error of a dtype, times the larger size of the matrix.
Tensor rounding(const Tensor& matrix) {
  const double unit = matrix.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                   : std::numeric_limits<float>::epsilon();
  const Dim larger = max(matrix.size(-2), matrix.size(-1));
  if (larger.is_constant()) return in_double(unit * static_cast<double>(larger.value()));
  return mul(sum(ones({larger}, DType::f64)), unit);
}
Tolerance tolerance_of(const Tensor& matrix, std::optional<double> absolute,
                       std::optional<double> relative) {
  const double atol = absolute.value_or(0);
  if (relative.has_value()) return {in_double(atol), in_double(*relative)};
  return {in_double(atol), atol > 0 ? in_double(0) : rounding(matrix)};
}
Tolerance tolerance_of(const Tensor& matrix, const Tensor& absolute, const Tensor& relative) {
  Tensor atol = absolute.defined() ? cast(absolute, DType::f64) : in_double(0);
  if (relative.defined()) return {atol, cast(relative, DType::f64)};
  if (!absolute.defined()) return {atol, rounding(matrix)};
  return {atol, where(gt(atol, 0), in_double(0), rounding(matrix))};
}
/// An argument that may be absent.
std::optional<double> number_of(const Boxed& boxed) {
  return boxed.present ? std::optional(boxed.scalar().to<double>()) : std::nullopt;
}

/// Which of the values (…, k) are above the tolerance. All of them are 0 or larger.
Tensor above(const Tensor& values, const Tolerance& tolerance) {
  const Tensor exact = cast(values, DType::f64), largest = amax(exact, {-1}, true);
  return gt(exact, maximum(unsqueeze(tolerance.absolute, -1),
                           mul(unsqueeze(tolerance.relative, -1), largest)));
}
/// 1 / values, but 0 for those that do not count.
Tensor inverse_of(const Tensor& values, const Tensor& counts) {
  return where(counts, reciprocal(values), 0);
}

// ---- inverses and ranks ----

Tensor pseudo_inverse(const Tensor& self, const Tolerance& tolerance, bool hermitian) {
  if (is_empty_matrix(self)) return zeros(mT(self).sizes(), self.dtype());
  if (hermitian) {
    const auto [values, vectors] = linalg_eigh(self);
    const Tensor inverse = inverse_of(values, above(abs(values), tolerance));
    return matmul(mul(vectors, unsqueeze(inverse, -2)), mT(vectors));
  }
  const auto [u, s, vh] = linalg_svd(self, false);
  const Tensor inverse = inverse_of(s, above(s, tolerance));
  return matmul(mul(mT(vh), unsqueeze(inverse, -2)), mT(u));
}

Tensor rank_of(const Tensor& self, const Tolerance& tolerance, bool hermitian) {
  if (is_empty_matrix(self)) {
    Dims batch = self.sizes();
    batch.resize(batch.size() - 2);
    return zeros(batch, DType::i64);
  }
  NoGrad guard;
  const Tensor values = hermitian ? abs(symmetric_eigenvalues(self)) : singular_values(self);
  return sum(above(values, tolerance), {-1});
}

}  // namespace

TAPER_DECOMPOSITION(linalg_pinv_atol_rtol_float) {
  const Tensor self = a.tensor<"self">();
  const bool hermitian = a.boolean<"hermitian">();
  need_matrices(self, "linalg_pinv", "self", hermitian);
  const Tolerance tolerance =
      tolerance_of(self, number_of(a.boxed<"atol">()), number_of(a.boxed<"rtol">()));
  return {pseudo_inverse(self, tolerance, hermitian)};
}
TAPER_DECOMPOSITION(linalg_pinv_atol_rtol_tensor) {
  const Tensor self = a.tensor<"self">();
  const bool hermitian = a.boolean<"hermitian">();
  need_matrices(self, "linalg_pinv", "self", hermitian);
  const Tolerance tolerance = tolerance_of(self, a.tensor<"atol">(), a.tensor<"rtol">());
  return {pseudo_inverse(self, tolerance, hermitian)};
}
TAPER_DECOMPOSITION(linalg_pinv) {
  return {linalg_pinv(a.tensor<"self">(), 0.0, a.real<"rcond">(), a.boolean<"hermitian">())};
}
TAPER_DECOMPOSITION(linalg_pinv_rcond_tensor) {
  return {
      linalg_pinv(a.tensor<"self">(), in_double(0), a.tensor<"rcond">(), a.boolean<"hermitian">())};
}
TAPER_DECOMPOSITION(pinverse) { return {linalg_pinv(a.tensor<"self">(), 0.0, a.real<"rcond">())}; }

TAPER_DECOMPOSITION(linalg_matrix_rank_atol_rtol_float) {
  const Tensor self = a.tensor<"self">();
  const bool hermitian = a.boolean<"hermitian">();
  need_matrices(self, "linalg_matrix_rank", "self", hermitian);
  const Tolerance tolerance =
      tolerance_of(self, number_of(a.boxed<"atol">()), number_of(a.boxed<"rtol">()));
  return {rank_of(self, tolerance, hermitian)};
}
TAPER_DECOMPOSITION(linalg_matrix_rank_atol_rtol_tensor) {
  const Tensor input = a.tensor<"input">();
  const bool hermitian = a.boolean<"hermitian">();
  need_matrices(input, "linalg_matrix_rank", "input", hermitian);
  const Tolerance tolerance = tolerance_of(input, a.tensor<"atol">(), a.tensor<"rtol">());
  return {rank_of(input, tolerance, hermitian)};
}
TAPER_DECOMPOSITION(linalg_matrix_rank) {
  return {linalg_matrix_rank(a.tensor<"self">(), a.real<"tol">(), 0.0, a.boolean<"hermitian">())};
}
TAPER_DECOMPOSITION(linalg_matrix_rank_tol_tensor) {
  return {linalg_matrix_rank(a.tensor<"input">(), a.tensor<"tol">(), in_double(0),
                             a.boolean<"hermitian">())};
}

// ---- least squares ----

namespace {

struct System {
  Tensor a, b;       ///< (…, m, n), (…, m, k)
  bool tall;         ///< m > n
  bool full_rank;    ///< the driver "gels"
  bool with_values;  ///< "gelsd" and "gelss" give the singular values
  bool with_residuals;
};

/// The solution if the matrix has full rank, by Q R: of A, or of A^T if A has fewer rows than
/// columns. Then it is the shortest of all solutions.
Tensor solve_full_rank(const System& system) {
  const auto [q, r] = linalg_qr(system.tall ? system.a : mT(system.a));
  if (!r.is_traced() && any(eq(diagonal(r, 0, -2, -1), 0)).item<bool>())
    throw EagerError(
        "linalg_lstsq: self does not have full rank, which the driver \"gels\" needs: use driver "
        "\"gelsd\"");
  if (system.tall) return linalg_solve_triangular(r, matmul(mT(q), system.b), true);
  return matmul(q, linalg_solve_triangular(mT(r), system.b, false));
}

struct Solution {
  Tensor x, rank, values;
};
/// The shortest of the solutions with the smallest residual: V diag(1 / S) U^T B.
Solution solve(const System& system, std::optional<double> rcond) {
  if (is_empty_matrix(system.a)) {
    Dims sizes = system.b.sizes(), batch = system.a.sizes();
    sizes[sizes.size() - 2] = system.a.size(-1);
    batch.resize(batch.size() - 2);
    return {zeros(sizes, system.b.dtype()), zeros(batch, DType::i64), singular_values(system.a)};
  }
  const auto [u, s, vh] = linalg_svd(system.a, false);
  const Tensor counts = above(s, tolerance_of(system.a, std::nullopt, rcond));
  const Tensor scaled = mul(unsqueeze(inverse_of(s, counts), -1), matmul(mT(u), system.b));
  return {matmul(mT(vh), scaled), sum(counts, {-1}), s};
}

System system_of(const Tensor& self, const Tensor& b, std::string_view driver) {
  constexpr std::array drivers{"gels", "gelsy", "gelsd", "gelss"};
  need_matrix(self, "linalg_lstsq", "self");
  if (std::find(drivers.begin(), drivers.end(), driver) == drivers.end())
    throw EagerError(
        "linalg_lstsq: driver must be \"gels\", \"gelsy\", \"gelsd\" or \"gelss\", got \"" +
        std::string(driver) + "\"");
  if (b.dtype() != self.dtype())
    refuse_matrix("linalg_lstsq",
                  std::string("b must have the dtype of self, ") + taper::name_of(self.dtype()), b);
  if (b.rank() != self.rank() && b.rank() + 1 != self.rank())
    refuse_matrix("linalg_lstsq", "b must have as many dimensions as self, or one less", b);
  const Tensor columns = b.rank() < self.rank() ? unsqueeze(b, -1) : b;
  if (proves_different(columns.size(-2), self.size(-2)))
    refuse_matrix("linalg_lstsq", "b must have as many rows as self " + to_string(self.sizes()), b);
  const bool with_values = driver == "gelsd" || driver == "gelss";
  const bool tall = proves_less(self.size(-1), self.size(-2));
  if (driver != "gelsy" && !tall && !proves_at_least(self.size(-1), self.size(-2)))
    throw EagerError("linalg_lstsq: the driver \"" + std::string(driver) +
                     "\" gives residuals if self has more rows than columns, which its sizes " +
                     to_string(self.sizes()) + " leave open: use the driver \"gelsy\"");
  return {self, columns, tall, driver == "gels", with_values, driver != "gelsy" && tall};
}

}  // namespace

// Residuals are left out if the rank is too small. A trace does not know the rank, and computes
// them.
TAPER_DECOMPOSITION(linalg_lstsq) {
  const Tensor self = a.tensor<"self">(), b = a.tensor<"b">();
  const System system =
      system_of(self, b, a.has<"driver">() ? a.text<"driver">() : std::string_view("gelsy"));
  const Tensor nothing = zeros({Dim(0)}, self.dtype());
  Solution solution{{}, zeros({Dim(0)}, DType::i64), nothing};
  if (system.full_rank)
    solution.x = solve_full_rank(system);
  else
    solution = solve(system, number_of(a.boxed<"rcond">()));
  bool with_residuals = system.with_residuals;
  if (with_residuals && system.with_values && !solution.rank.is_traced())
    with_residuals = all(eq(solution.rank, self.size(-1).value())).item<bool>();
  Tensor residuals = nothing;
  if (with_residuals) residuals = sum(square(sub(matmul(self, solution.x), system.b)), {-2});
  const bool vector = b.rank() < self.rank();
  return {vector ? squeeze(solution.x, -1) : solution.x, residuals, solution.rank,
          system.with_values ? solution.values : nothing};
}

}  // namespace taper::eager::decompositions
