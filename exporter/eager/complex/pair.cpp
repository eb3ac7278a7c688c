#include "taper/exporter/eager/complex/pair.h"

#include <cmath>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager {
namespace {

Tensor part_of(const Tensor& t, int64_t part) {
  return select(call<ops::view_as_real>(t), -1, part);
}

bool has_gradient(const Pair& z) {
  return grad_enabled() && (z.re.requires_grad() || (z.im.defined() && z.im.requires_grad()));
}

/// `value` with 0 in the place of zeros of z. The gradient there is 0, too.
Tensor without_zeros(const Tensor& value, const Tensor& zero) {
  return zero.defined() ? masked_fill(value, zero, 0) : value;
}
/// Where z is 0, if that matters for a gradient; else undefined.
Tensor zeros_that_matter(const Pair& z) { return has_gradient(z) ? is_zero(z) : Tensor(); }
/// z with 1 in the place of its zeros, so that derivatives are finite there.
Pair away_from_zero(const Pair& z, const Tensor& zero) {
  return zero.defined() ? Pair{masked_fill(z.re, zero, 1), z.im} : z;
}

}  // namespace

Pair pair_of(const Tensor& t) {
  if (is_complex(t.dtype())) return {part_of(t, 0), part_of(t, 1)};
  if (t.dtype() == DType::f64 && t.rank() > 0)
    throw ExportError(
        "f64 and c64 together need complex numbers of f64, which do not exist here; cast the f64 "
        "tensor to f32");
  return {cast(t, DType::f32), {}};
}
Pair dense_pair_of(const Tensor& t) {
  const Pair z = pair_of(t);
  return {contiguous(z.re), z.is_real() ? z.im : contiguous(z.im)};
}
Tensor imaginary(const Pair& z) { return z.is_real() ? zeros_like(z.re) : z.im; }
Tensor complex_of(const Pair& z) {
  std::vector<Tensor> parts = {z.re, imaginary(z)};
  if (!same_sizes(parts[0].sizes(), parts[1].sizes())) parts = broadcast_tensors(parts);
  const Tensor joined = call<ops::view_as_complex>(stack(parts, -1));
  // Nobody else holds the pairs, so this is no view: it may have a name, and be written.
  if (recorder() == nullptr) joined.impl()->base = {}, joined.impl()->view = nullptr;
  return joined;
}

// ---- arithmetic ----

Tensor plus(const Tensor& a, const Tensor& b) {
  return !a.defined() ? b : !b.defined() ? a : add(a, b);
}
Tensor minus(const Tensor& a, const Tensor& b) {
  return !b.defined() ? a : !a.defined() ? neg(b) : sub(a, b);
}
Pair operator-(const Pair& z) { return {neg(z.re), z.is_real() ? Tensor() : neg(z.im)}; }
Pair operator+(const Pair& x, const Pair& y) { return {add(x.re, y.re), plus(x.im, y.im)}; }
Pair operator-(const Pair& x, const Pair& y) { return {sub(x.re, y.re), minus(x.im, y.im)}; }
Pair operator*(const Pair& x, const Pair& y) {
  return product_of(x, y, [](const Tensor& a, const Tensor& b) { return mul(a, b); });
}
Pair operator*(const Pair& z, Scalar factor) {
  return {mul(z.re, factor), z.is_real() ? Tensor() : mul(z.im, factor)};
}
Pair operator/(const Pair& x, const Pair& y) {
  if (y.is_real()) return {div(x.re, y.re), x.is_real() ? Tensor() : div(x.im, y.re)};
  // The quotient does not depend on the scale, so the scale needs no gradient.
  const Tensor scale = no_grad([&] { return maximum(abs(y.re), abs(y.im)); });
  const Tensor c = div(y.re, scale), d = div(y.im, scale);
  const Tensor square = add(mul(y.re, c), mul(y.im, d));  // |y|^2 / scale
  const Pair product = x * Pair{c, neg(d)};
  return {div(product.re, square), div(product.im, square)};
}
Pair conjugate(const Pair& z) { return {z.re, z.is_real() ? Tensor() : neg(z.im)}; }

// ---- size and direction ----

Tensor is_zero(const Pair& z) {
  const Tensor zero = eq(z.re, 0);
  return z.is_real() ? zero : logical_and(zero, eq(z.im, 0));
}
Tensor magnitude(const Pair& z) {
  if (z.is_real()) return abs(z.re);
  const Tensor zero = zeros_that_matter(z);
  return without_zeros(hypot(away_from_zero(z, zero).re, z.im), zero);
}
Tensor phase(const Pair& z) { return atan2(imaginary(z), z.re); }
Pair direction(const Pair& z) {
  const Tensor zero = is_zero(z);
  const Tensor size = magnitude(away_from_zero(z, zero));
  return {without_zeros(div(z.re, size), zero), without_zeros(div(imaginary(z), size), zero)};
}

// ---- elementary functions ----

Pair exponential(const Pair& z) {
  const Tensor size = exp(z.re);
  if (z.is_real()) return {size, {}};
  return {mul(size, cos(z.im)), mul(size, sin(z.im))};
}
Pair logarithm(const Pair& z) {
  return {log(z.is_real() ? abs(z.re) : hypot(z.re, z.im)), phase(z)};
}

// t = sqrt((|a| + |z|) / 2) is the larger part of the root; the other is b / 2t.
Pair square_root(const Pair& z) {
  const Tensor b = imaginary(z), right = ge(z.re, 0);
  const Tensor a = where(right, z.re, neg(z.re));
  const Tensor larger = sqrt(add(mul(a, 0.5), mul(magnitude(z), 0.5)));
  const Tensor smaller = div(mul(b, 0.5), clamp_min(larger, 1e-30));  // 0 for z = 0
  const Tensor sign = no_grad([&] { return copysign(ones_like(b), b); });
  return {where(right, larger, mul(smaller, sign)), where(right, smaller, mul(larger, sign))};
}

Pair power(const Pair& x, const Pair& y) {
  const Tensor zero = is_zero(x);
  const Pair result = exponential(y * logarithm(away_from_zero(x, zero)));
  const Tensor undefined = where(is_zero(y), Scalar(1.0), Scalar(std::nan("")));
  const Tensor at_zero = where(gt(y.re, 0), zeros_like(y.re), undefined);
  return {where(zero, at_zero, result.re), without_zeros(imaginary(result), zero)};
}
Pair power(const Pair& x, int64_t exponent) {
  if (exponent == 0) return {ones_like(x.re), zeros_like(x.re)};
  uint64_t left = static_cast<uint64_t>(exponent < 0 ? -exponent : exponent);
  Pair factor = x, result;
  for (bool first = true;; factor = factor * factor) {
    if ((left & 1) != 0) result = first ? factor : result * factor, first = false;
    left >>= 1;
    if (left == 0) break;
  }
  return exponent < 0 ? Pair{ones_like(x.re), {}} / result : result;
}

}  // namespace taper::eager
