// Derivatives of Fourier transforms. A transform is linear, so its gradient is the transform with
// the conjugate matrix: the inverse without its division. A gradient of a complex number is dL/dRe
// + i dL/dIm, as in PyTorch.
#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/derivatives/shared.h"

namespace taper::eager::derivatives {
namespace {

/// Multiplies the elements of half a spectrum that stand for two of a line of n real numbers: all
/// but the first, and but the last if n is even.
Tensor with_pairs_scaled(const Tensor& half, int64_t dim, const Dim& n, double factor) {
  const Dim size = half.size(dim), pairs = n - size;
  const Tensor factors =
      constant_pad_nd(full({pairs}, factor, DType::f32), {1, size - pairs - 1}, 1);
  const int64_t last = half.rank() - 1;
  Dims sizes(static_cast<size_t>(half.rank()) + 1, Dim(1));  // of the real and imaginary parts
  sizes[static_cast<size_t>(dim < 0 ? dim + last + 1 : dim)] = size;
  return call<ops::view_as_complex>(
      contiguous(call<ops::view_as_real>(half) * reshape(factors, sizes)));
}

}  // namespace

TAPER_DERIVATIVE(_fft_c2c) {
  return {call<ops::_fft_c2c>(dy, saved.dims<"dim">(), saved.integer<"normalization">(),
                              !saved.boolean<"forward">())};
}
// The real part of the inverse transform. From half a spectrum c2r computes it, but c2r counts
// pairs twice.
TAPER_DERIVATIVE(_fft_r2c) {
  const Ints dims = saved.integers<"dim">();
  const int64_t mode = saved.integer<"normalization">();
  if (saved.boolean<"onesided">()) {
    const Dim n = saved.sizes<"self">()[static_cast<size_t>(
        dims.back() < 0 ? dims.back() + dy.rank() : dims.back())];
    return {call<ops::_fft_c2r>(with_pairs_scaled(dy, dims.back(), n, 0.5), dims, mode, n)};
  }
  const Tensor dx = call<ops::_fft_c2c>(dy, Dims(dims.begin(), dims.end()), mode, false);
  return {select(call<ops::view_as_real>(dx), -1, 0)};
}
TAPER_DERIVATIVE(_fft_c2r) {
  const Ints dims = saved.integers<"dim">();
  const Tensor dx = call<ops::_fft_r2c>(dy, dims, saved.integer<"normalization">(), true);
  return {with_pairs_scaled(dx, dims.back(), saved.dim<"last_dim_size">(), 2)};
}

}  // namespace taper::eager::derivatives
