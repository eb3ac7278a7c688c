// Products of Householder's reflections, and what PyTorch has beside them under older names.
#include <numeric>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/singular_values.h"

namespace taper::eager::decompositions {
namespace {

/// H1 H2 … Hk = I - V T V^H for reflections Hi = I - tau_i v_i v_i^H. V (…, m, k) has the vectors
/// as columns, and T (…, k, k) is upper triangular: T = (I + D S)^-1 D with D = diag(tau), where S
/// is V^H V above its diagonal. Joffrain et al., "Accumulating Householder transformations,
/// revisited", 2006.
struct CompactReflections {
  Tensor v, t;
};

/// The vectors stand below the diagonal of `columns`; their first element is a one.
CompactReflections reflections_of(std::string_view op, const Tensor& columns, const Tensor& tau) {
  need_matrix(columns, op, "the matrix of reflections", true);
  if (tau.rank() + 1 != columns.rank() || tau.dtype() != columns.dtype() ||
      proves_less(columns.size(-1), tau.size(-1)) || proves_less(columns.size(-2), tau.size(-1)))
    refuse_matrix(op,
                  "tau must have the dtype and the batch of the reflections " +
                      to_string(columns.sizes()) + ", and a number for each",
                  tau);
  const Dim m = columns.size(-2), k = tau.size(-1);
  const Tensor v = add(tril(narrow(columns, -1, 0, k), -1), eye(m, k, columns.dtype()));
  const Tensor above = triu(matmul(mH(v), v), 1), scale = unsqueeze(tau, -1);
  const Tensor diagonal = mul(scale, eye(k, tau.dtype()));
  return {v, linalg_solve_triangular(mul(scale, above), diagonal, true, true, true)};
}

/// The first n columns of the product, for reflections (…, m, n).
Results first_columns_of_q(std::string_view op, const Tensor& columns, const Tensor& tau) {
  const CompactReflections h = reflections_of(op, columns, tau);
  const Dim m = columns.size(-2), n = columns.size(-1);
  if (proves_less(m, n))
    refuse_matrix(op, "the matrix must not have more columns than rows", columns);
  const Tensor rows = narrow(h.v, -2, 0, n);
  return {sub(eye(m, n, columns.dtype()), matmul(h.v, matmul(h.t, mH(rows))))};
}

Dim product_of_sizes(const Dims& sizes, size_t begin, size_t end) {
  return std::accumulate(sizes.begin() + static_cast<std::ptrdiff_t>(begin),
                         sizes.begin() + static_cast<std::ptrdiff_t>(end), Dim(1),
                         [](const Dim& a, const Dim& b) { return a * b; });
}

}  // namespace

TAPER_DECOMPOSITION(linalg_householder_product) {
  return first_columns_of_q("linalg_householder_product", a.tensor<"input">(), a.tensor<"tau">());
}
TAPER_DECOMPOSITION(orgqr) {
  return first_columns_of_q("orgqr", a.tensor<"self">(), a.tensor<"input2">());
}

TAPER_DECOMPOSITION(ormqr) {
  const CompactReflections h = reflections_of("ormqr", a.tensor<"self">(), a.tensor<"input2">());
  const Tensor other = a.tensor<"input3">(), vh = mH(h.v);
  const bool left = a.boolean<"left">();
  need_matrix(other, "ormqr", "input3", true);
  if (proves_different(other.size(left ? -2 : -1), h.v.size(-2)))
    refuse_matrix(
        "ormqr",
        std::string("input3 must have ") + h.v.size(-2).to_string() + (left ? " rows" : " columns"),
        other);
  const Tensor t = a.boolean<"transpose">() ? mH(h.t) : h.t;
  if (left) return {sub(other, matmul(h.v, matmul(t, matmul(vh, other))))};
  return {sub(other, matmul(matmul(matmul(other, h.v), t), vh))};
}

// The second result is a copy of A, with the batch of the first.
TAPER_DECOMPOSITION(triangular_solve) {
  const Tensor matrix = a.tensor<"A">();
  need_matrix(matrix, "triangular_solve", "A", true);
  const bool transposed = a.boolean<"transpose">();
  const Tensor x = linalg_solve_triangular(transposed ? mT(matrix) : matrix, a.tensor<"self">(),
                                           a.boolean<"upper">() != transposed, true,
                                           a.boolean<"unitriangular">());
  Dims sizes = x.sizes();
  sizes[sizes.size() - 2] = sizes[sizes.size() - 1] = matrix.size(-1);
  return {x, clone(expand(matrix, sizes))};
}

// ---- tensors as matrices

TAPER_DECOMPOSITION(linalg_tensorinv) {
  const Tensor self = a.tensor<"self">();
  const int64_t ind = a.integer<"ind">();
  if (ind < 1)
    throw EagerError("linalg_tensorinv: ind must be 1 or more, got " + std::to_string(ind));
  const Dims sizes = self.sizes();
  const size_t first = std::min(static_cast<size_t>(ind), sizes.size());
  const Dim rows = product_of_sizes(sizes, 0, first),
            columns = product_of_sizes(sizes, first, sizes.size());
  if (proves_different(rows, columns))
    refuse_matrix(
        "linalg_tensorinv",
        "the first " + std::to_string(ind) + " sizes and the others must have the same product",
        self);
  Dims result(sizes.begin() + static_cast<std::ptrdiff_t>(first), sizes.end());
  result.insert(result.end(), sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(first));
  return {reshape(linalg_inv(reshape(self, {rows, columns})), result)};
}

// `dims` of self are moved to its end. Then the sizes behind those of `other` are the result's.
TAPER_DECOMPOSITION(linalg_tensorsolve) {
  Tensor self = a.tensor<"self">();
  const Tensor other = a.tensor<"other">();
  if (a.has<"dims">()) {
    const Ints dims = a.integers<"dims">();
    Ints ends(dims.size());
    std::iota(ends.begin(), ends.end(), -static_cast<int64_t>(dims.size()));
    self = movedim(self, dims, ends);
  }
  const Dims sizes = self.sizes();
  const size_t first = std::min(other.sizes().size(), sizes.size());
  const Dim rows = other.numel(), columns = product_of_sizes(sizes, first, sizes.size());
  if (proves_different(product_of_sizes(sizes, 0, first), rows) || proves_different(rows, columns))
    refuse_matrix("linalg_tensorsolve",
                  "self must have the sizes of other " + to_string(other.sizes()) +
                      ", and behind them sizes with the same product",
                  self);
  const Tensor x = linalg_solve(reshape(self, {rows, columns}), reshape(other, {rows}));
  return {reshape(x, Dims(sizes.begin() + static_cast<std::ptrdiff_t>(first), sizes.end()))};
}

}  // namespace taper::eager::decompositions
