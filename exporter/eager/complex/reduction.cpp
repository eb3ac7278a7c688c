// Sums, products, means and norms of complex numbers.
#include "taper/exporter/eager/complex/form.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::complex_forms {
namespace {

/// The variance is that of the real parts plus that of the imaginary parts: a real number.
Results variance(const OperatorInfo& info, const Boxed* arguments) {
  const Results re = real_parts(info, arguments), im = imaginary_parts(info, arguments, true);
  Results results = joined(re, im);  // the mean, if there is a second result
  results[0] = add(re[0], im[0]);
  return results;
}
/// The standard deviation, from the results of the variance with the same arguments.
template <const Operator& of_variance>
Results deviation(const OperatorInfo&, const Boxed* arguments) {
  Results results = variance(info_of(of_variance), arguments);
  results[0] = sqrt(results[0]);
  return results;
}

/// The number of elements along `dim`. A product of complex numbers is written out for a number.
int64_t fixed_extent(const Tensor& z, int64_t dim) {
  const Dim extent = z.size(dim);
  if (!extent.is_constant())
    throw ExportError("a product of complex numbers needs a fixed size, and dim " +
                      std::to_string(dim) + " of " + to_string(z.sizes()) +
                      " is symbolic; export with a number for it (--dim NAME=NUMBER)");
  return extent.value();
}

/// The product of z[0] … z[n - 1] along `dim`, with a size of 1 there: halves are multiplied until
/// one element is left.
Tensor product_along(Tensor z, int64_t dim) {
  int64_t n = fixed_extent(z, dim);
  if (n == 0) {
    Dims sizes = z.sizes();
    sizes[static_cast<size_t>(dim)] = Dim(1);
    return ones(sizes, z.dtype());
  }
  while (n > 1) {
    const int64_t half = n / 2;
    const Tensor product = mul(slice(z, dim, Dim(0), Dim(half)), slice(z, dim, half, 2 * half));
    z = n % 2 == 0 ? product : cat({product, slice(z, dim, 2 * half, n)}, dim);
    n = n - half;
  }
  return z;
}

/// All products of z[0] … z[i] along `dim`. In each round, an element is multiplied with the one
/// `step` places before it, and `step` doubles (W. D. Hillis, G. L. Steele, "Data parallel
/// algorithms", 1986).
Tensor products_along(Tensor z, int64_t dim) {
  const int64_t n = fixed_extent(z, dim);
  for (int64_t step = 1; step < n; step *= 2) {
    const Tensor first = slice(z, dim, Dim(0), Dim(step));
    const Tensor rest = mul(slice(z, dim, step, n), slice(z, dim, Dim(0), Dim(n - step)));
    z = cat({first, rest}, dim);
  }
  return z;
}

/// `dim` from the front; a 0-dim tensor counts as one with a single dimension.
int64_t from_front(int64_t dim, const Tensor& z, const char* op) {
  return decompositions::checked_dim(dim, z.rank(), op, z);
}

}  // namespace

TAPER_COMPLEX_FORM(sum_dim_IntList, by_parts)
TAPER_COMPLEX_FORM(nansum, by_parts)
TAPER_COMPLEX_FORM(mean, by_parts)
TAPER_COMPLEX_FORM(mean_dim, by_parts)
TAPER_COMPLEX_FORM(cumsum, by_parts)

TAPER_COMPLEX_FORM(var_correction, variance)
TAPER_COMPLEX_FORM(var_dim, variance)
TAPER_COMPLEX_FORM(var_mean_correction, variance)
TAPER_COMPLEX_FORM(std_correction, deviation<ops::var_correction>)
TAPER_COMPLEX_FORM(std_mean_correction, deviation<ops::var_mean_correction>)

TAPER_COMPLEX(prod) {
  const Tensor flat = reshape(a.tensor<"self">(), {Dim(-1)});
  return {reshape(product_along(to(flat, DType::c64), 0), Dims())};
}
TAPER_COMPLEX(prod_dim_int) {
  const Tensor self = to(a.tensor<"self">(), DType::c64);
  const int64_t dim = from_front(a.integer<"dim">(), self, "prod");
  if (self.rank() == 0) return {self};
  const Tensor product = product_along(self, dim);
  return {a.boolean<"keepdim">() ? product : squeeze(product, dim)};
}
TAPER_COMPLEX(cumprod) {
  const Tensor self = to(a.tensor<"self">(), DType::c64);
  const int64_t dim = from_front(a.integer<"dim">(), self, "cumprod");
  return {self.rank() == 0 ? self : products_along(self, dim)};
}

static Results norm_of_sizes(const OperatorInfo& info, const Boxed* arguments) {
  Boxed real[Schema::max_parameters];
  std::copy_n(arguments, info.argument_count, real);
  const Tensor sizes = magnitude(pair_of(arguments[0].tensor()));
  real[0] = Boxed::of(sizes);
  constexpr int dtype = position<ops::linalg_vector_norm, "dtype">();
  if (real[dtype].present) real[dtype] = Boxed::of(DType::f32);
  Tensor result;
  dispatch(info, real, &result, place());
  return {result};
}
TAPER_COMPLEX_FORM(linalg_vector_norm, norm_of_sizes)

}  // namespace taper::eager::complex_forms
