// A tensor of complex numbers as two real tensors, and the functions on them.
#pragma once
#include "taper/exporter/eager/tensor.h"

namespace taper::eager {

/// a + bi. A real number has no imaginary part (`im` is undefined), so nothing is computed with its
/// zeros.
struct Pair {
  Tensor re, im;
  bool is_real() const { return !im.defined(); }
};

/// The parts of a complex tensor, as views; a real one, cast to f32. Throws ExportError for f64
/// with dimensions: together with c64 it would give complex numbers in f64.
Pair pair_of(const Tensor& t);
/// The same with dense parts, for operators that read elements more than once. A constant's parts
/// are then computed once, at export.
Pair dense_pair_of(const Tensor& t);
/// The complex tensor (c64). The parts broadcast.
Tensor complex_of(const Pair& z);
/// The imaginary part, zeros for a real number.
Tensor imaginary(const Pair& z);

Pair operator-(const Pair& z);
Pair operator+(const Pair& x, const Pair& y);
Pair operator-(const Pair& x, const Pair& y);
Pair operator*(const Pair& x, const Pair& y);
/// Scaled by the larger part of y, so that no square overflows. Division by 0 or by an infinity
/// gives NaN.
Pair operator/(const Pair& x, const Pair& y);
/// Times a real number.
Pair operator*(const Pair& z, Scalar factor);
Pair conjugate(const Pair& z);

/// a + b and a - b. An undefined tensor stands for 0.
Tensor plus(const Tensor& a, const Tensor& b);
Tensor minus(const Tensor& a, const Tensor& b);
/// ac - bd + (ad + bc) i, by a product of real tensors.
template <class Product>
Pair product_of(const Pair& x, const Pair& y, const Product& product) {
  const auto times = [&](const Tensor& a, const Tensor& b) {
    return a.defined() && b.defined() ? product(a, b) : Tensor();
  };
  return {minus(times(x.re, y.re), times(x.im, y.im)), plus(times(x.re, y.im), times(x.im, y.re))};
}

/// |z|, without overflow of squares. Its gradient at 0 is 0.
Tensor magnitude(const Pair& z);
/// The angle in (-pi, pi]. Its gradient at 0 is 0.
Tensor phase(const Pair& z);
/// z / |z|, and 0 for 0.
Pair direction(const Pair& z);
/// Where both parts are 0.
Tensor is_zero(const Pair& z);

Pair exponential(const Pair& z);
Pair logarithm(const Pair& z);
/// The root whose real part is not negative.
Pair square_root(const Pair& z);
/// exp(y log(x)). 0 to a power is 0 if the real part of y is positive, 1 if y is 0, and NaN
/// otherwise.
Pair power(const Pair& x, const Pair& y);
/// By repeated squaring.
Pair power(const Pair& x, int64_t exponent);

}  // namespace taper::eager
