// Complex matrices as real ones of twice the size: A + Bi is [[A, -B], [B, A]]. Products, inverses
// and pseudo-inverses of these stand for those of the complex matrices. Each singular value stands
// there twice, and each eigenvalue of a Hermitian matrix.
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/complex/form.h"
#include "taper/exporter/eager/factors.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::complex_forms {
namespace {

Tensor twice_as_large(const Pair& z) {
  const Tensor im = imaginary(z);
  return cat({cat({z.re, neg(im)}, -1), cat({im, z.re}, -1)}, -2);
}
/// [[A], [B]]: the first columns of the matrix of twice the size.
Tensor stacked(const Pair& z) { return cat({z.re, imaginary(z)}, -2); }
Tensor of_stacked(const Tensor& t) {
  const Dim rows = t.size(-2) / 2;
  return complex_of({narrow(t, -2, 0, rows), narrow(t, -2, rows, rows)});
}

Pair transposed(const Pair& z) { return {mT(z.re), mT(imaginary(z))}; }

/// The Hermitian matrix that has one triangle of z. As in PyTorch, the gradient is that of a
/// function of all elements.
Pair hermitian(const Tensor& t, std::string_view triangle) {
  const Pair z = pair_of(t);
  const bool upper = triangle == "U" || triangle == "u";
  const Pair given = no_grad([&] {
    const Pair lower = upper ? conjugate(transposed(z)) : z;
    const Tensor re = tril(lower.re, -1), im = tril(imaginary(lower), -1);
    return Pair{add(tril(lower.re), mT(re)), sub(im, mT(im))};
  });
  if (!grad_enabled() || !t.requires_grad()) return given;
  const auto with_gradient = [](const Tensor& value, const Tensor& of) {
    return add(value, sub(of, of.detach()));
  };
  return {with_gradient(given.re, z.re), with_gradient(given.im, imaginary(z))};
}

/// Each value once. The mean of two equal ones, so that both share the gradient.
Tensor one_of_two(const Tensor& values) {
  return mean(unflatten(values, -1, {values.size(-1) / 2, Dim(2)}), {-1});
}

/// Throws unless only values are asked for: vectors of equal values may be any of their space.
void need_values_only(std::string_view op, bool vectors) {
  if (vectors) throw EagerError(describe_no_complex_form(op));
}

}  // namespace

// The factors of the complex matrix are unknown: the second and third results are those of the real
// matrix.
TAPER_COMPLEX(_linalg_solve_ex) {
  const Tensor b = a.tensor<"B">(), matrix = a.tensor<"A">();
  const bool left = a.boolean<"left">();
  const bool vector = is_vector_of(matrix.sizes(), b.sizes());
  const Pair z = pair_of(matrix), right = pair_of(vector ? unsqueeze(b, -1) : b);
  const auto [x, lu, pivots, info] = call<ops::_linalg_solve_ex>(
      twice_as_large(left ? z : transposed(z)), stacked(left ? right : transposed(right)), true,
      a.boolean<"check_errors">());
  const Tensor solution = of_stacked(x);
  return {vector ? squeeze(solution, -1) : left ? solution : mT(solution), lu, pivots, info};
}
TAPER_COMPLEX(linalg_inv_ex) {
  const Pair z = pair_of(a.tensor<"A">());
  const Pair one{eye(z.re.size(-1)), {}};
  const auto [x, info] =
      linalg_solve_ex(twice_as_large(z), stacked(one), true, a.boolean<"check_errors">());
  return {of_stacked(x), info};
}
TAPER_COMPLEX(linalg_pinv_atol_rtol_float) {
  std::optional<double> atol, rtol;
  if (a.has<"atol">()) atol = a.real<"atol">();
  if (a.has<"rtol">()) rtol = a.real<"rtol">();
  const Tensor inverse = linalg_pinv(twice_as_large(pair_of(a.tensor<"self">())), atol, rtol,
                                     a.boolean<"hermitian">());
  return {of_stacked(narrow(inverse, -1, 0, inverse.size(-1) / 2))};
}

TAPER_COMPLEX(linalg_eigvalsh) {
  const Pair z = hermitian(a.tensor<"self">(), a.text<"UPLO">());
  return {one_of_two(linalg_eigvalsh(twice_as_large(z)))};
}
TAPER_COMPLEX(linalg_svdvals) {
  return {one_of_two(linalg_svdvals(twice_as_large(pair_of(a.tensor<"A">()))))};
}

// What decomposed programs call.
TAPER_COMPLEX(_linalg_eigh) {
  need_values_only("_linalg_eigh", a.boolean<"compute_v">());
  return {linalg_eigvalsh(a.tensor<"A">(), a.text<"UPLO">()), Tensor()};
}
TAPER_COMPLEX(_linalg_svd) {
  need_values_only("_linalg_svd", a.boolean<"compute_uv">());
  return {Tensor(), linalg_svdvals(a.tensor<"A">()), Tensor()};
}

}  // namespace taper::eager::complex_forms
