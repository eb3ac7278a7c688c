// Fourier transforms with PyTorch's public arguments, in three kernels: complex to complex, real to
// half a spectrum, and back.
#include "taper/exporter/eager/ops/fft.h"

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::decompositions {
namespace {

template <const Operator& op>
std::string named(const std::string& text) {
  return std::string(schema<op>.name) + ": " + text;
}

/// Bool and integers as f32.
template <const Operator& op>
Tensor signal(const Arguments<op>& a, bool must_be_real) {
  const Tensor self = a.template tensor<"self">();
  if (is_complex(self.dtype())) {
    if (!must_be_real) return self;
    throw EagerError(named<op>("needs a real tensor, not c64"));
  }
  if (self.dtype() == DType::f32) return self;
  if (self.dtype() == DType::boolean || is_integral(self.dtype())) return to(self, DType::f32);
  throw EagerError(named<op>(std::string("has no complex numbers for ") +
                             taper::name_of(self.dtype()) + ": cast self to f32"));
}
Tensor as_complex(const Tensor& x) {
  if (is_complex(x.dtype())) return x;
  return call<ops::view_as_complex>(constant_pad_nd(unsqueeze(x, -1), {0, 1}));
}

/// The dimensions that are transformed, and their sizes.
struct Axes {
  Ints dims;
  Dims sizes;
  bool keeps_last = true;  ///< nobody asked for another size of the last of them
};
/// `dim`, or the last `count` dimensions, or all.
template <const Operator& op>
Ints dims_of(const Arguments<op>& a, std::optional<size_t> count) {
  const Tensor self = a.template tensor<"self">();
  if (a.template has<"dim">()) {
    Ints dims = a.template integers<"dim">();
    uint64_t seen = 0;
    for (int64_t& d : dims) {
      d = checked_dim(d, self.rank(), schema<op>.name, self);
      if (((seen >> d) & 1) != 0)
        throw EagerError(
            named<op>("dims must be unique, but dim " + std::to_string(d) + " is named twice"));
      seen |= uint64_t{1} << d;
    }
    return dims;
  }
  const int64_t all = self.rank(), used = static_cast<int64_t>(count.value_or(all));
  if (used > all)
    throw EagerError(
        named<op>("got " + std::to_string(used) + " sizes for " + to_string(self.sizes())));
  Ints dims;
  for (int64_t d = all - used; d < all; ++d) dims.push_back(d);
  return dims;
}
template <const Operator& op>
Axes axes_of(const Arguments<op>& a) {
  constexpr bool one_dimension = position_of(schema<op>, "n") >= 0;
  const Tensor self = a.template tensor<"self">();
  Axes axes;
  Dims asked;
  if constexpr (one_dimension) {
    if (self.rank() == 0) throw EagerError(named<op>("self has no dimensions"));
    axes.dims = {checked_dim(a.template integer<"dim">(), self.rank(), schema<op>.name, self)};
    if (a.template has<"n">()) asked = {a.template dim<"n">()};
  } else {
    asked = a.template dims<"s">();
    const bool has_sizes = a.template has<"s">();
    axes.dims = dims_of(a, has_sizes ? std::optional(asked.size()) : std::nullopt);
    if (has_sizes && asked.size() != axes.dims.size())
      throw EagerError(named<op>("s has " + std::to_string(asked.size()) + " sizes for " +
                                 std::to_string(axes.dims.size()) + " dims"));
  }
  for (size_t i = 0; i < axes.dims.size(); ++i) {
    const bool keeps = asked.empty() || (!one_dimension && proves_equal(asked[i], Dim(-1)));
    axes.sizes.push_back(keeps ? self.size(axes.dims[i]) : asked[i]);
    axes.keeps_last = keeps;
  }
  return axes;
}
/// The size of the real signal along the last axis: what is asked for, or 2 (size - 1). The axis
/// itself gets the size of half the spectrum.
Dim take_real_size(Axes& axes) {
  Dim& last = axes.sizes.back();
  const Dim size = axes.keeps_last ? (last - 1) * 2 : last;
  last = size / 2 + 1;
  return size;
}

template <const Operator& op>
void require_points(const Dim& n) {
  if (proves_less(n, Dim(1)))
    throw EagerError(named<op>("cannot transform " + n.to_string() + " elements"));
}
/// Each axis cut to its size, or padded with zeros behind its end.
template <const Operator& op>
Tensor resized(const Tensor& x, const Axes& axes) {
  Dims pad(2 * static_cast<size_t>(x.rank()), Dim(0));  // begins with the last dimension
  bool changes = false;
  for (size_t i = 0; i < axes.dims.size(); ++i) {
    require_points<op>(axes.sizes[i]);
    const Dim size = x.size(axes.dims[i]);
    if (proves_equal(size, axes.sizes[i])) continue;
    pad[2 * static_cast<size_t>(x.rank() - 1 - axes.dims[i]) + 1] = axes.sizes[i] - size;
    changes = true;
  }
  return changes ? constant_pad_nd(x, pad) : x;
}

/// The kernels' number for `norm`: 0 keeps sums, 1 divides by the root of the number of elements, 2
/// by that number.
template <const Operator& op>
int64_t normalization(const Arguments<op>& a, bool forward) {
  const std::string_view norm =
      a.template has<"norm">() ? a.template text<"norm">() : std::string_view("backward");
  if (norm == "ortho") return 1;
  if (norm == "backward") return forward ? 0 : 2;
  if (norm == "forward") return forward ? 2 : 0;
  throw EagerError(named<op>("norm must be forward, backward or ortho, not " + std::string(norm)));
}

template <const Operator& op>
Tensor complex_transform(const Arguments<op>& a, bool forward) {
  const Axes axes = axes_of(a);
  const int64_t mode = normalization(a, forward);
  const Tensor x = resized<op>(signal(a, false), axes);
  if (axes.dims.empty()) return as_complex(x);
  if (is_complex(x.dtype()))
    return call<ops::_fft_c2c>(x, Dims(axes.dims.begin(), axes.dims.end()), mode, forward);
  const Tensor y = call<ops::_fft_r2c>(x, axes.dims, mode, false);
  return forward ? y : call<ops::conj>(y);
}
/// Half the spectrum of a real signal. The inverse transform's spectrum is the conjugate.
template <const Operator& op>
Tensor real_transform(const Arguments<op>& a, bool forward) {
  const Axes axes = axes_of(a);
  if (axes.dims.empty()) throw EagerError(named<op>("must transform at least one dimension"));
  const int64_t mode = normalization(a, forward);
  const Tensor y = call<ops::_fft_r2c>(resized<op>(signal(a, true), axes), axes.dims, mode, true);
  return forward ? y : call<ops::conj>(y);
}
/// A real signal from half its spectrum. The transform of a conjugate is the inverse transform's
/// conjugate, and a real result is its own.
template <const Operator& op>
Tensor transform_to_real(const Arguments<op>& a, bool forward) {
  Axes axes = axes_of(a);
  if (axes.dims.empty()) throw EagerError(named<op>("must transform at least one dimension"));
  const Dim last = take_real_size(axes);
  require_points<op>(last);
  const int64_t mode = normalization(a, forward);
  const Tensor x = as_complex(resized<op>(signal(a, false), axes));
  return call<ops::_fft_c2r>(forward ? call<ops::conj>(x) : x, axes.dims, mode, last);
}

/// Rolls each dimension by half its size; for the inverse, half is rounded up.
template <const Operator& op>
Tensor half_rolled(const Arguments<op>& a, bool inverse) {
  const Tensor self = a.template tensor<"self">();
  const Ints dims = dims_of(a, {});
  Dims shifts;
  for (const int64_t d : dims) shifts.push_back((self.size(d) + (inverse ? 1 : 0)) / 2);
  return dims.empty() ? self : roll(self, shifts, dims);
}

}  // namespace

#define TAPER_FFT(name, transform, forward)                        \
  TAPER_DECOMPOSITION(name) { return {transform(a, forward)}; }    \
  TAPER_DECOMPOSITION(name##2) { return {transform(a, forward)}; } \
  TAPER_DECOMPOSITION(name##n) { return {transform(a, forward)}; }
TAPER_FFT(fft_fft, complex_transform, true)
TAPER_FFT(fft_ifft, complex_transform, false)
TAPER_FFT(fft_rfft, real_transform, true)
TAPER_FFT(fft_ihfft, real_transform, false)
TAPER_FFT(fft_irfft, transform_to_real, false)
TAPER_FFT(fft_hfft, transform_to_real, true)
#undef TAPER_FFT

TAPER_DECOMPOSITION(fft_fftshift) { return {half_rolled(a, false)}; }
TAPER_DECOMPOSITION(fft_ifftshift) { return {half_rolled(a, true)}; }

}  // namespace taper::eager::decompositions
