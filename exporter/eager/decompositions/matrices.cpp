// Singular values, eigenvalues, factors P L U, and what is made of them: norms and condition
// numbers.
#include "taper/exporter/eager/ops/matrices.h"

#include <cmath>
#include <limits>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/factors.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/singular_values.h"
#include "taper/exporter/eager/text.h"

namespace taper::eager {

void refuse_matrix(std::string_view op, const std::string& what, const Tensor& got) {
  throw EagerError(std::string(op) + ": " + what + ", got " + taper::name_of(got.dtype()) + " " +
                   to_string(got.sizes()));
}
void need_matrix(const Tensor& t, std::string_view op, const char* name, bool may_be_complex) {
  if (t.rank() < 2)
    refuse_matrix(op, std::string(name) + " must be a matrix or a batch of them", t);
  if (!is_floating(t.dtype()) && !(may_be_complex && is_complex(t.dtype())))
    refuse_matrix(op, std::string(name) + " must have a floating dtype", t);
}

bool needs_vectors(const Tensor& a) { return grad_enabled() && a.requires_grad(); }
Tensor singular_values(const Tensor& a) {
  if (is_complex(a.dtype())) return linalg_svdvals(a);
  return std::get<1>(call<ops::_linalg_svd>(a, false, needs_vectors(a), std::nullopt));
}
Tensor symmetric_eigenvalues(const Tensor& a, std::string_view uplo) {
  return std::get<0>(call<ops::_linalg_eigh>(a, uplo, needs_vectors(a)));
}
bool is_empty_matrix(const Tensor& a) {
  return proves_equal(a.size(-2), Dim(0)) || proves_equal(a.size(-1), Dim(0));
}

Tensor spectral_norm(const Tensor& self, SpectralNorm norm, const Ints& dims, bool keepdim,
                     std::optional<DType> dtype) {
  const Tensor matrices =
      movedim(dtype.has_value() ? cast(self, *dtype) : self, dims, Ints{-2, -1});
  Tensor result = singular_values(matrices);
  if (is_empty_matrix(matrices) || norm == SpectralNorm::sum)
    result = sum(result, {-1});
  else  // equal values share a gradient
    result = norm == SpectralNorm::largest ? amax(result, {-1}) : amin(result, {-1});
  if (!keepdim) return result;
  return movedim(unsqueeze(unsqueeze(result, -1), -1), Ints{-2, -1}, dims);
}

namespace decompositions {
namespace {

/// The argument `driver`, as the kernel's rule takes it.
template <const Operator& op>
std::optional<std::string_view> driver_of(const Arguments<op>& a) {
  return a.template has<"driver">() ? std::optional(a.template text<"driver">()) : std::nullopt;
}

}  // namespace

// ---- singular values ----

TAPER_DECOMPOSITION(linalg_svd) {
  const auto [u, s, vh] =
      call<ops::_linalg_svd>(a.tensor<"A">(), a.boolean<"full_matrices">(), true, driver_of(a));
  return {u, s, vh};
}
TAPER_DECOMPOSITION(linalg_svdvals) {
  const Tensor matrix = a.tensor<"A">();
  return {std::get<1>(call<ops::_linalg_svd>(matrix, false, needs_vectors(matrix), driver_of(a)))};
}
// Without compute_uv, U and V are zeros.
TAPER_DECOMPOSITION(svd) {
  const Tensor self = a.tensor<"self">();
  need_matrix(self, "svd", "self");
  if (a.boolean<"compute_uv">()) {
    const auto [u, s, vh] = linalg_svd(self, !a.boolean<"some">());
    return {u, s, mT(vh)};
  }
  const auto square = [&](Dim n) {
    Dims sizes = self.sizes();
    sizes[sizes.size() - 2] = sizes[sizes.size() - 1] = n;
    return zeros(sizes, self.dtype());
  };
  return {square(self.size(-2)), singular_values(self), square(self.size(-1))};
}

// ---- eigenvalues ----

TAPER_DECOMPOSITION(linalg_eigh) {
  const auto [values, vectors] =
      call<ops::_linalg_eigh>(a.tensor<"self">(), a.text<"UPLO">(), true);
  return {values, vectors};
}
TAPER_DECOMPOSITION(linalg_eigvalsh) {
  return {symmetric_eigenvalues(a.tensor<"self">(), a.text<"UPLO">())};
}

namespace {
/// Throws unless there are complex numbers for the results.
void need_complex(const Tensor& self, std::string_view op) {
  if (self.dtype() == DType::f32) return;
  if (self.dtype() == DType::f64)
    refuse_matrix(
        op,
        "complex numbers are pairs of f32: cast self to f32, or call taper::eig, which gives "
        "pairs of f64",
        self);
  refuse_matrix(op, "self must be f32", self);
}
}  // namespace

TAPER_DECOMPOSITION(linalg_eig) {
  const Tensor self = a.tensor<"self">();
  need_complex(self, "linalg_eig");
  const auto [values, vectors] = call<ops::taper_eig>(self, true);
  return {call<ops::view_as_complex>(values), call<ops::view_as_complex>(vectors)};
}
TAPER_DECOMPOSITION(_linalg_eigvals) {
  const Tensor self = a.tensor<"self">();
  need_complex(self, "_linalg_eigvals");
  const Tensor values = std::get<0>(call<ops::taper_eig>(self, needs_vectors(self)));
  return {call<ops::view_as_complex>(values)};
}
TAPER_DECOMPOSITION(linalg_eigvals) {
  const Tensor self = a.tensor<"self">();
  need_complex(self, "linalg_eigvals");
  return {call<ops::_linalg_eigvals>(self)};
}

// ---- factors P L U ----

TAPER_DECOMPOSITION(linalg_lu) {
  const auto [lu, pivots, info] =
      call<ops::linalg_lu_factor_ex>(a.tensor<"A">(), a.boolean<"pivot">(), false);
  const auto [p, l, u] = lu_unpack(lu, pivots);
  return {p, l, u};
}
TAPER_DECOMPOSITION(lu_unpack) {
  const Tensor lu = a.tensor<"LU_data">(), pivots = a.tensor<"LU_pivots">();
  need_matrix(lu, "lu_unpack", "LU_data");
  const Dim m = lu.size(-2), n = lu.size(-1), k = min(m, n);
  const Tensor nothing = zeros({Dim(0)}, lu.dtype());
  Results results{nothing, nothing, nothing};
  if (a.boolean<"unpack_pivots">()) {
    Dims expected = lu.sizes();
    expected.pop_back(), expected.back() = k;
    if (pivots.dtype() != DType::i32 || pivots.rank() + 1 != lu.rank() ||
        proves_different(pivots.size(-1), k))
      refuse_matrix("lu_unpack", "LU_pivots must be i32 " + to_string(expected), pivots);
    results[0] = exchange_rows(pivots, eye(m, lu.dtype()), true);
  }
  if (a.boolean<"unpack_data">()) {
    results[1] = add(tril(narrow(lu, -1, 0, k), -1), eye(m, k, lu.dtype()));
    results[2] = triu(narrow(lu, -2, 0, k));
  }
  return results;
}
TAPER_DECOMPOSITION(lu_solve) {
  return {linalg_lu_solve(a.tensor<"LU_data">(), a.tensor<"LU_pivots">(), a.tensor<"self">())};
}

// ---- norms and condition numbers ----

TAPER_DECOMPOSITION(nuclear_norm) {
  return {linalg_matrix_norm(a.tensor<"self">(), "nuc", {-2, -1}, a.boolean<"keepdim">())};
}
TAPER_DECOMPOSITION(nuclear_norm_dim) {
  return {
      linalg_matrix_norm(a.tensor<"self">(), "nuc", a.integers<"dim">(), a.boolean<"keepdim">())};
}

namespace {

/// A condition number of 0 for each matrix without elements.
Tensor no_conditions(const Tensor& self) {
  Dims batch = self.sizes();
  batch.resize(batch.size() - 2);
  return zeros(batch, self.dtype());
}
/// The norm of self times that of its inverse, which is infinite if self is singular.
template <class Norm>
Tensor condition_by_inverse(const Tensor& self, const Norm& norm) {
  if (proves_different(self.size(-2), self.size(-1)))
    refuse_matrix("linalg_cond", "of this order, self must be a square matrix or a batch of them",
                  self);
  const auto [inverse, info] = linalg_inv_ex(self);
  const Tensor singular = unsqueeze(unsqueeze(ne(info, 0), -1), -1);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Tensor product = mul(norm(self), norm(masked_fill(inverse, singular, infinity)));
  return nan_to_num(product, infinity, infinity, -infinity);  // of zeros
}

}  // namespace

TAPER_DECOMPOSITION(linalg_cond) {
  const Tensor self = a.tensor<"self">();
  const double order = a.has<"p">() ? a.real<"p">() : 2;
  need_matrix(self, "linalg_cond", "self");
  if (std::abs(order) != 2 && std::abs(order) != 1 && !std::isinf(order))
    throw EagerError("linalg_cond: p must be 2, -2, 1, -1, inf, -inf, \"fro\" or \"nuc\", got " +
                     to_text(order));
  if (is_empty_matrix(self)) return {no_conditions(self)};
  if (std::abs(order) != 2)
    return {condition_by_inverse(
        self, [&](const Tensor& x) { return linalg_matrix_norm(x, Scalar(order)); })};
  const Tensor s = singular_values(self);
  const Tensor largest = select(s, -1, Dim(0)), smallest = select(s, -1, s.size(-1) - 1);
  return {order > 0 ? div(largest, smallest) : div(smallest, largest)};
}
TAPER_DECOMPOSITION(linalg_cond_p_str) {
  const Tensor self = a.tensor<"self">();
  const std::string_view order = a.text<"p">();
  need_matrix(self, "linalg_cond", "self");
  if (order != "fro" && order != "nuc")
    throw EagerError("linalg_cond: p must be \"fro\", \"nuc\" or a number, got \"" +
                     std::string(order) + "\"");
  if (is_empty_matrix(self)) return {no_conditions(self)};
  if (order == "fro")
    return {condition_by_inverse(self, [](const Tensor& x) { return linalg_matrix_norm(x); })};
  if (proves_different(self.size(-2), self.size(-1)))
    refuse_matrix("linalg_cond", "of this order, self must be a square matrix or a batch of them",
                  self);
  const Tensor s = singular_values(self);
  return {mul(sum(s, {-1}), sum(reciprocal(s), {-1}))};
}

}  // namespace decompositions
}  // namespace taper::eager
