// Complex matrices as real ones of twice the size: A + Bi is [[A, -B], [B, A]]. Products, inverses
// and pseudo-inverses of these stand for those of the complex matrices. Each singular value stands
// there twice, and each eigenvalue of a Hermitian matrix. With the rows and columns of each number
// side by side, the matrix of twice the size is triangular if A + Bi is and has a real diagonal.
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

/// Of a matrix of twice the size.
Tensor of_first_columns(const Tensor& t) { return of_stacked(narrow(t, -1, 0, t.size(-1) / 2)); }
/// The matrix of twice the size with the parts of each number side by side, and columns as it takes
/// them: (…, n, k) becomes (…, 2n, k).
Tensor side_by_side(const Pair& z) {
  const Tensor im = imaginary(z);
  const Tensor rows = stack({stack({z.re, neg(im)}, -1), stack({im, z.re}, -1)}, -3);
  return flatten(flatten(rows, -2, -1), -3, -2);
}
Tensor parts_in_rows(const Pair& z) { return flatten(stack({z.re, imaginary(z)}, -2), -3, -2); }
Tensor of_parts_in_rows(const Tensor& t) {
  const Tensor rows = unflatten(t, -2, {t.size(-2) / 2, Dim(2)});
  return complex_of({select(rows, -2, 0), select(rows, -2, 1)});
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

/// Of a Hermitian matrix, the lower triangle counts.
template <const Operator& op>
Tensor matrix_to_invert(const Arguments<op>& a) {
  const Tensor self = a.template tensor<"self">();
  return twice_as_large(a.template boolean<"hermitian">() ? hermitian(self, "L") : pair_of(self));
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
  const Pair one{expand(eye(z.re.size(-1)), z.re.sizes()), {}};
  const auto [x, info] =
      linalg_solve_ex(twice_as_large(z), stacked(one), true, a.boolean<"check_errors">());
  return {of_stacked(x), info};
}
// D^-1 A has ones on its diagonal. Its rows are solved, so those of B are divided, too.
TAPER_COMPLEX(linalg_solve_triangular) {
  const Tensor matrix = a.tensor<"self">(), b = a.tensor<"B">();
  const bool upper = a.boolean<"upper">(), has_ones = a.boolean<"unitriangular">();
  if (!a.boolean<"left">())
    return {mT(linalg_solve_triangular(mT(matrix), mT(b), !upper, true, has_ones))};
  Pair z = pair_of(matrix), right = pair_of(b);
  const auto read = [&](const Tensor& part) { return upper ? triu(part, 1) : tril(part, -1); };
  z = {read(z.re), read(imaginary(z))};
  if (!has_ones) {
    const Pair scale = pair_of(unsqueeze(diagonal(to(matrix, DType::c64), 0, -2, -1), -1));
    z = z / scale, right = right / scale;
  }
  return {of_parts_in_rows(linalg_solve_triangular(side_by_side(z), parts_in_rows(right), upper,
                                                   true, /*unitriangular=*/true))};
}
TAPER_COMPLEX(linalg_lstsq) {
  const Tensor matrix = a.tensor<"self">(), b = a.tensor<"b">();
  const bool vector = b.rank() < matrix.rank();
  std::optional<double> rcond;
  if (a.has<"rcond">()) rcond = a.real<"rcond">();
  std::optional<std::string_view> driver;
  if (a.has<"driver">()) driver = a.text<"driver">();
  const auto [x, residuals, rank, values] =
      call<ops::linalg_lstsq>(twice_as_large(pair_of(matrix)),
                              stacked(pair_of(vector ? unsqueeze(b, -1) : b)), rcond, driver);
  const Tensor solution = of_stacked(x);
  return {vector ? squeeze(solution, -1) : solution, residuals, floor_divide(rank, 2),
          one_of_two(values)};
}
TAPER_COMPLEX(linalg_pinv_atol_rtol_float) {
  std::optional<double> atol, rtol;
  if (a.has<"atol">()) atol = a.real<"atol">();
  if (a.has<"rtol">()) rtol = a.real<"rtol">();
  return {of_first_columns(linalg_pinv(matrix_to_invert(a), atol, rtol, a.boolean<"hermitian">()))};
}
TAPER_COMPLEX(linalg_pinv_atol_rtol_tensor) {
  return {of_first_columns(linalg_pinv(matrix_to_invert(a), a.tensor<"atol">(), a.tensor<"rtol">(),
                                       a.boolean<"hermitian">()))};
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
