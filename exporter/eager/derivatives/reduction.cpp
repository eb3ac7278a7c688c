// Derivatives of reductions: the gradient goes back to every element that was reduced, weighed.
#include "taper/exporter/eager/ops/reduction.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {
namespace {

int64_t positive(int64_t dim, size_t rank) {
  return dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
}
bool contains(const Ints& dims, size_t i, size_t rank) {
  if (dims.empty()) return true;
  for (const int64_t d : dims)
    if (positive(d, rank) == static_cast<int64_t>(i)) return true;
  return false;
}

/// A reduced tensor with its dimensions kept as ones; no dims: all.
Tensor with_dims_kept(const Tensor& y, const Dims& sizes, const Ints& dims) {
  Dims kept = sizes;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (contains(dims, i, sizes.size())) kept[i] = 1;
  return reshape(y, kept);
}
Tensor spread(const Tensor& y, const Dims& sizes, const Ints& dims) {
  return expand(with_dims_kept(y, sizes, dims), sizes);
}

/// dy divided by the number of elements reduced. A symbolic extent is counted by a sum of ones.
Tensor divided_by_count(const Tensor& dy, const Dims& sizes, const Ints& dims,
                        double correction = 0) {
  Dim known = 1;
  Tensor counted;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!contains(dims, i, sizes.size())) continue;
    if (sizes[i].is_constant()) {
      known = known * sizes[i];
      continue;
    }
    const Tensor count = sum(ones({sizes[i]}, dy.dtype()));
    counted = counted.defined() ? counted * count : count;
  }
  const double number = static_cast<double>(known.value());
  // A correction above the count: 0, as in the variance itself; along dimensions PyTorch has the
  // negative number.
  const bool whole = dims.empty() || sizes.empty();
  const double divisor = whole ? std::max(number - correction, 0.0) : number - correction;
  if (!counted.defined()) return dy / Scalar(divisor);
  return dy / (counted * Scalar(number) - Scalar(correction));
}

/// Shared evenly among the elements of a mask.
Tensor share_along(const Tensor& dy, const Tensor& mask, const Ints& dims) {
  const Dims sizes = mask.sizes();
  const Tensor equal = to(mask, dy.dtype());
  return equal * (with_dims_kept(dy, sizes, dims) / sum(equal, dims, true));
}

/// Among those equal to the extreme. A NaN is equal to none: the gradient is NaN, as in PyTorch.
Tensor share_among_equal(const Tensor& dy, const Tensor& x, const Tensor& y, const Ints& dims) {
  return share_along(dy, eq(x, with_dims_kept(y, x.sizes(), dims)), dims);
}
/// The same for `max` and `min` of all elements, where NaN counts as equal to NaN, as in PyTorch.
Tensor share_among_all(const Tensor& dy, const Tensor& x, const Tensor& y) {
  return share_along(dy, logical_or(eq(x, y), logical_and(isnan(x), isnan(y))), {});
}

/// Element i becomes element i - by, `fill` where there is none.
Tensor shifted(const Tensor& x, int64_t dim, int64_t by, Scalar fill) {
  const size_t behind = x.sizes().size() - static_cast<size_t>(positive(dim, x.sizes().size()));
  Dims pad(2 * behind, 0);
  pad[2 * behind - 2] = by, pad[2 * behind - 1] = -by;
  return constant_pad_nd(x, pad, fill);
}
/// The products of the elements before each, along `dim`: no division, so zeros are like others.
Tensor product_before(const Tensor& x, int64_t dim) { return shifted(cumprod(x, dim), dim, 1, 1); }
/// The product of all others along `dim`.
Tensor product_of_others(const Tensor& x, int64_t dim) {
  return product_before(x, dim) * flip(product_before(flip(x, {dim}), dim), {dim});
}
/// s[i] = x[i] + a[i + 1] * s[i + 1], from the end.
Tensor recurrence_from_the_end(const Tensor& a, const Tensor& x, int64_t dim) {
  const Tensor next = shifted(a, dim, -1, 0);
  return flip(call<ops::taper_linear_recurrence>(flip(next, {dim}), flip(x, {dim}), dim), {dim});
}
/// The gradient of elements that were picked along `dim`.
Tensor added_at(const Tensor& index, const Tensor& dy, const Dims& sizes, int64_t dim) {
  return call<ops::scatter_add>(zeros(sizes, dy.dtype()), dim, index, dy);
}

}  // namespace

TAPER_DERIVATIVE(sum_dim_IntList) {
  return {spread(dy, saved.sizes<"self">(), saved.integers<"dim">())};
}
TAPER_DERIVATIVE(mean) {
  const Dims sizes = saved.sizes<"self">();
  return {spread(divided_by_count(dy, sizes, {}), sizes, {})};
}
TAPER_DERIVATIVE(mean_dim) {
  const Dims sizes = saved.sizes<"self">();
  const Ints dims = saved.integers<"dim">();
  return {spread(divided_by_count(dy, sizes, dims), sizes, dims)};
}
TAPER_DERIVATIVE(amax, "self", "result") {
  return {share_among_equal(dy, saved.tensor<"self">(), saved.result(), saved.integers<"dim">())};
}
TAPER_DERIVATIVE(amin, "self", "result") {
  return {share_among_equal(dy, saved.tensor<"self">(), saved.result(), saved.integers<"dim">())};
}
TAPER_DERIVATIVE(max, "self", "result") {
  return {share_among_all(dy, saved.tensor<"self">(), saved.result())};
}
TAPER_DERIVATIVE(min, "self", "result") {
  return {share_among_all(dy, saved.tensor<"self">(), saved.result())};
}

/// To the one element whose index was given.
static Gradients to_index(const Tensor& dy, const Tensor& index, const Dims& sizes, int64_t dim) {
  if (sizes.empty()) return {reshape(dy, sizes)};
  const Tensor zero = zeros(sizes, dy.dtype());
  return {call<ops::scatter_src>(zero, dim, with_dims_kept(index, sizes, {dim}),
                                 with_dims_kept(dy, sizes, {dim}))};
}
TAPER_DERIVATIVE(max_dim, "result1") {
  return to_index(dy, saved.result(1), saved.sizes<"self">(), saved.integer<"dim">());
}
TAPER_DERIVATIVE(min_dim, "result1") {
  return to_index(dy, saved.result(1), saved.sizes<"self">(), saved.integer<"dim">());
}

/// The slopes of products y along `dim`, with the dimension kept, as PyTorch has them: y / x where
/// no element of the tensor is 0, so that an infinity or a NaN leaves none in its own place; else
/// the products of all others, which zeros leave defined.
static Tensor slopes_of_product(const Tensor& x, const Tensor& y, int64_t dim) {
  const Tensor zero = eq(x, 0);
  return where(any(zero), product_of_others(x, dim), y / masked_fill(x, zero, 1));
}
TAPER_DERIVATIVE(prod, "self", "result") {
  const Tensor x = saved.tensor<"self">();
  if (x.rank() == 0) return {dy};
  const Tensor line = reshape(x, {Dim(-1)});
  const Tensor slopes = slopes_of_product(line, saved.result(), 0);
  // two zeros leave nothing of the others, NaN neither
  const Tensor two_zeros = sum(eq(line, 0), Ints{}) > 1;
  return {dy * reshape(masked_fill(slopes, two_zeros, 0), x.sizes())};
}
TAPER_DERIVATIVE(prod_dim_int, "self", "result") {
  const Tensor x = saved.tensor<"self">();
  if (x.rank() == 0) return {dy};
  const int64_t dim = saved.integer<"dim">();
  const Tensor y = with_dims_kept(saved.result(), x.sizes(), {dim});
  return {with_dims_kept(dy, x.sizes(), {dim}) * slopes_of_product(x, y, dim)};
}

// PyTorch's formulas, case by case, so that zeros, infinities and NaN have its gradients. With the
// norm y: sign(x) |x|^(p - 1) y^(1 - p).
TAPER_DERIVATIVE(linalg_vector_norm, "self", "result") {
  const double p = saved.real<"ord">();
  const DType dtype = saved.dtype_of<"self">(), wide = dtype == DType::f64 ? dtype : DType::f32;
  Ints dims;
  for (const Dim& d : saved.dims<"dim">()) dims.push_back(d.value());
  const Tensor x = saved.tensor<"self">().to(wide), size = abs(x);
  const Tensor y = with_dims_kept(saved.result().to(wide), x.sizes(), dims),
               g = with_dims_kept(dy.to(wide), x.sizes(), dims), zero = eq(y, 0);
  // what has no slope at 0 is computed at 1, and replaced: its own derivative stays finite
  const auto power = [](const Tensor& t, const Tensor& is_zero, double exponent) {
    return masked_fill(pow(masked_fill(t, is_zero, 1), exponent), is_zero, 0);
  };
  Tensor dx;
  if (p == 0) {
    dx = zeros_like(x);
  } else if (p == 1) {
    dx = sign(x) * g;
  } else if (p == 2) {
    dx = g * (x / masked_fill(y, zero, 1));
  } else if (std::isinf(p)) {
    // shared among the extreme elements; NaN counts as one, and its sign is 0
    const Tensor mask = logical_or(eq(size, y), isnan(x)).to(wide);
    dx = sign(x) * ((g / sum(mask, dims, true)) * mask);
  } else if (p < 1) {
    dx = sign(x) * power(size, eq(x, 0), p - 1) * g * power(y, zero, 1 - p);
  } else {
    const Tensor scale = masked_fill(g / pow(masked_fill(y, zero, 1), p - 1), zero, 0);
    dx = (p < 2 ? sign(x) * pow(size, p - 1) : x * pow(size, p - 2)) * scale;
  }
  return {dx.to(dtype)};
}

/// 2 dy (x - mean) / (count - correction)
static Tensor of_variance(const Tensor& dy, const Tensor& x, const Ints& dims, double correction) {
  const Dims sizes = x.sizes();
  const Tensor scaled =
      divided_by_count(with_dims_kept(dy, sizes, dims) * 2, sizes, dims, correction);
  return scaled * (x - mean(x, dims, true));
}
/// The gradient of a variance from that of its root; 0 where the root is 0.
static Tensor of_root(const Tensor& dy, const Tensor& root) {
  const Tensor zero = eq(root, 0);
  return masked_fill(dy / (masked_fill(root, zero, 1) * 2), zero, 0);
}
template <class S>
static double correction_of(const S& saved) {
  return saved.template has<"correction">() ? saved.template real<"correction">() : 1;
}
static DType computed(DType dtype) { return dtype == DType::f64 ? dtype : DType::f32; }

TAPER_DERIVATIVE(var_correction, "self") {
  return {of_variance(dy, saved.tensor<"self">(), saved.integers<"dim">(), correction_of(saved))};
}
TAPER_DERIVATIVE(var_dim, "self") {
  return {of_variance(dy, saved.tensor<"self">(), saved.integers<"dim">(),
                      saved.boolean<"unbiased">() ? 1 : 0)};
}
TAPER_DERIVATIVE(std_correction, "self", "result") {
  const DType dtype = saved.dtype_of<"self">(), wide = computed(dtype);
  const Tensor of_square = of_root(dy.to(wide), saved.result().to(wide));
  return {of_variance(of_square, saved.tensor<"self">().to(wide), saved.integers<"dim">(),
                      correction_of(saved))
              .to(dtype)};
}

/// Of a variance, `of_square`, and of the mean beside it; one of them may be undefined.
template <class S>
static Gradients variance_and_mean(const S& saved, const Tensor& of_square, const Tensor& of_mean) {
  const DType dtype = saved.template dtype_of<"self">(), wide = computed(dtype);
  const Dims sizes = saved.template sizes<"self">();
  const Ints dims = saved.template integers<"dim">();
  Tensor dx;
  if (of_square.defined())
    dx = of_variance(of_square, saved.template tensor<"self">().to(wide), dims,
                     correction_of(saved));
  if (of_mean.defined()) {
    const Tensor more = spread(divided_by_count(of_mean.to(wide), sizes, dims), sizes, dims);
    dx = dx.defined() ? dx + more : more;
  }
  return {dx.to(dtype)};
}
TAPER_DERIVATIVE(var_mean_correction, "self") {
  const DType wide = computed(saved.dtype_of<"self">());
  return variance_and_mean(saved, dy.defined() ? dy.to(wide) : dy, dys[1]);
}
TAPER_DERIVATIVE(std_mean_correction, "self", "result0") {
  const DType wide = computed(saved.dtype_of<"self">());
  return variance_and_mean(saved, dy.defined() ? of_root(dy.to(wide), saved.result().to(wide)) : dy,
                           dys[1]);
}

/// Running sums from the end.
static Tensor cumsum_from_the_end(const Tensor& x, int64_t dim) {
  if (x.rank() == 0) return x;
  return flip(cumsum(flip(x, {dim}), dim), {dim});
}
TAPER_DERIVATIVE(cumsum) { return {cumsum_from_the_end(dy, saved.integer<"dim">())}; }
// y_k is the product of x_0 … x_k: dx_i = product before i * s_i, where s_i is the sum over k >= i
// of dy_k times the product of x_j, i < j <= k: s_i = dy_i + x_{i + 1} s_{i + 1}.
//
// PyTorch has three formulas, which differ beside infinities and NaN. Where no element is 0, it
// divides: dx_i = (sum over k >= i of dy_k y_k) / x_i. If this gradient may be derived again, it
// multiplies as above. Otherwise `first_gradient_of_cumprod` treats each line by its zeros.
static Tensor first_gradient_of_cumprod(const Tensor& dy, const Tensor& x, const Tensor& y,
                                        int64_t dim) {
  const Tensor zeros_so_far = cumsum(eq(x, 0).to(DType::i64), dim);
  const Tensor before_first = eq(zeros_so_far, 0), from_first = eq(zeros_so_far, 1);
  const Tensor is_first = logical_and(from_first, eq(x, 0));
  const Tensor behind_first = logical_and(from_first, ne(x, 0));
  const Tensor divided =
      cumsum_from_the_end(where(before_first, dy * y, 0), dim) / where(before_first, x, 1);
  // of y_k from the first zero up to the second: the product without that zero
  const Tensor behind = cumprod(where(behind_first, x, 1), dim) * where(from_first, dy, 0);
  const Tensor at_first = shifted(y, dim, 1, 1) * sum(behind, {dim}, true);
  return where(before_first, divided, where(is_first, at_first, 0));
}
TAPER_DERIVATIVE(cumprod, "self", "result") {
  const Tensor x = saved.tensor<"self">(), y = saved.result();
  if (x.rank() == 0 || proves_equal(x.size(saved.integer<"dim">()), 1)) return {dy};
  const int64_t dim = saved.integer<"dim">();
  if (!grad_enabled()) return {first_gradient_of_cumprod(dy, x, y, dim)};
  const Tensor zero = eq(x, 0);
  return {where(any(zero), product_before(x, dim) * recurrence_from_the_end(x, dy, dim),
                cumsum_from_the_end(dy * y, dim) / masked_fill(x, zero, 1))};
}
// y_i = b_i + a_i y_{i - 1}: db_i = s_i = dy_i + a_{i + 1} s_{i + 1}, da_i = s_i y_{i - 1}.
TAPER_DERIVATIVE(taper_linear_recurrence, "a", "result") {
  if (dy.rank() == 0) return {Tensor(), dy};
  const int64_t dim = saved.integer<"dim">();
  const Tensor db = recurrence_from_the_end(saved.tensor<"a">(), dy, dim);
  // a[0] has no part in the result
  return {shifted(shifted(db, dim, -1, 0) * saved.result(), dim, 1, 0), db};
}
// y_k = log(sum over j <= k of exp(x_j)): dx_j = exp(x_j - y_j) s_j, where s_j = dy_j +
// exp(y_j - y_{j + 1}) s_{j + 1}. No exponent is above 0.
TAPER_DERIVATIVE(logcumsumexp, "self", "result") {
  const Tensor x = saved.tensor<"self">(), y = saved.result();
  if (x.rank() == 0) return {dy};
  const int64_t dim = saved.integer<"dim">();
  const Tensor before = shifted(y, dim, 1, 0);
  const Tensor step = exp(masked_fill(before - y, eq(before, y), 0));  // of two infinities, too
  return {exp(x - y) * recurrence_from_the_end(step, dy, dim)};
}
TAPER_DERIVATIVE(cummax, "result1") {
  return {added_at(saved.result(1), dy, saved.sizes<"self">(), saved.integer<"dim">())};
}
TAPER_DERIVATIVE(cummin, "result1") {
  return {added_at(saved.result(1), dy, saved.sizes<"self">(), saved.integer<"dim">())};
}

TAPER_DERIVATIVE(nansum, "self") {
  const Tensor x = saved.tensor<"self">();
  const Tensor all = spread(dy, x.sizes(), saved.integers<"dim">());
  return {masked_fill(all, isnan(x), 0)};
}
TAPER_DERIVATIVE(median, "self", "result") {
  return {share_among_all(dy, saved.tensor<"self">(), saved.result())};
}
TAPER_DERIVATIVE(nanmedian, "self", "result") {
  return {share_among_all(dy, saved.tensor<"self">(), saved.result())};
}
TAPER_DERIVATIVE(median_dim, "result1") {
  return to_index(dy, saved.result(1), saved.sizes<"self">(), saved.integer<"dim">());
}
TAPER_DERIVATIVE(kthvalue, "result1") {
  return to_index(dy, saved.result(1), saved.sizes<"self">(), saved.integer<"dim">());
}

}  // namespace taper::eager::derivatives
