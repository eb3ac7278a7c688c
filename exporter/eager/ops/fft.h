// Discrete Fourier transforms, with PyTorch's names and arguments.
//
// Spectra are c64, signals f32; bool and integers are cast to f32. `n` (or `s`, one for each
// dimension) cuts signals or pads them with zeros; without it they stay as they are. `norm` is
// "backward" (the inverse is divided by the number of elements; the default), "forward" (the
// transform is), or "ortho" (both are divided by its root).
//
// Errors, thrown as EagerError: f64, f16 and bf16, which have no complex numbers; a size below 1; a
// dimension that is named twice.
#pragma once
#include <optional>
#include <string_view>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

using FftNorm = std::optional<std::string_view>;

// ---- one dimension ----

/// The spectrum of `self` along `dim`: y[k] = sum of x[j] e^(-2 pi i j k / n).
inline Tensor fft_fft(const Tensor& self, std::optional<Dim> n = {}, int64_t dim = -1,
                      const FftNorm& norm = {}, Location here = Location::current()) {
  return call<ops::fft_fft>(here, self, n, dim, norm);
}
/// The inverse of `fft_fft`.
inline Tensor fft_ifft(const Tensor& self, std::optional<Dim> n = {}, int64_t dim = -1,
                       const FftNorm& norm = {}, Location here = Location::current()) {
  return call<ops::fft_ifft>(here, self, n, dim, norm);
}
/// The elements 0 … n / 2 of the spectrum of a real signal. The others are their conjugates.
inline Tensor fft_rfft(const Tensor& self, std::optional<Dim> n = {}, int64_t dim = -1,
                       const FftNorm& norm = {}, Location here = Location::current()) {
  return call<ops::fft_rfft>(here, self, n, dim, norm);
}
/// The inverse of `fft_rfft`: n real numbers, by default 2 (size - 1). For an odd n, give it.
inline Tensor fft_irfft(const Tensor& self, std::optional<Dim> n = {}, int64_t dim = -1,
                        const FftNorm& norm = {}, Location here = Location::current()) {
  return call<ops::fft_irfft>(here, self, n, dim, norm);
}
/// The real spectrum of a signal whose other half is the conjugate, as in `fft_irfft`.
inline Tensor fft_hfft(const Tensor& self, std::optional<Dim> n = {}, int64_t dim = -1,
                       const FftNorm& norm = {}, Location here = Location::current()) {
  return call<ops::fft_hfft>(here, self, n, dim, norm);
}
/// The inverse of `fft_hfft`.
inline Tensor fft_ihfft(const Tensor& self, std::optional<Dim> n = {}, int64_t dim = -1,
                        const FftNorm& norm = {}, Location here = Location::current()) {
  return call<ops::fft_ihfft>(here, self, n, dim, norm);
}

// ---- several dimensions ----

/// The same of two dimensions, and of several: by default all, or the last ones if `s` is given. An
/// element -1 of `s` keeps a size. A real spectrum is halved along the last of `dim`.
#define TAPER_EAGER_FFT(name)                                                          \
  inline Tensor name##2(const Tensor& self, const std::optional<Dims>& s = {},         \
                        const Ints& dim = {-2, -1}, const FftNorm& norm = {},          \
                        Location here = Location::current()) {                         \
    return call<ops::name##2>(here, self, s, dim, norm);                               \
  }                                                                                    \
  inline Tensor name##n(const Tensor& self, const std::optional<Dims>& s = {},         \
                        const std::optional<Ints>& dim = {}, const FftNorm& norm = {}, \
                        Location here = Location::current()) {                         \
    return call<ops::name##n>(here, self, s, dim, norm);                               \
  }
TAPER_EAGER_FFT(fft_fft)
TAPER_EAGER_FFT(fft_ifft)
TAPER_EAGER_FFT(fft_rfft)
TAPER_EAGER_FFT(fft_irfft)
TAPER_EAGER_FFT(fft_hfft)
TAPER_EAGER_FFT(fft_ihfft)
#undef TAPER_EAGER_FFT

// ---- the order of a spectrum ----

/// Moves frequency 0 to the middle of `dim` (default: of every dimension).
inline Tensor fft_fftshift(const Tensor& self, const std::optional<Ints>& dim = {},
                           Location here = Location::current()) {
  return call<ops::fft_fftshift>(here, self, dim);
}
/// The inverse of `fft_fftshift`.
inline Tensor fft_ifftshift(const Tensor& self, const std::optional<Ints>& dim = {},
                            Location here = Location::current()) {
  return call<ops::fft_ifftshift>(here, self, dim);
}

// ---- spectra of parts of a signal ----

/// What `stft` and `istft` may be told beside `n_fft`. What is absent has PyTorch's default.
struct Stft {
  std::optional<int64_t> hop_length;  ///< distance of two frames; default n_fft / 4
  std::optional<int64_t> win_length;  ///< default n_fft; a shorter window stands in the middle
  Tensor window;                      ///< (win_length); default ones
  bool center = true;  ///< frame t has its middle at t * hop_length: both ends are padded
  std::string_view pad_mode = "reflect";
  bool normalized = false;       ///< divided by the root of n_fft
  std::optional<bool> onesided;  ///< n_fft / 2 + 1 frequencies; default true for a real signal
  std::optional<bool> return_complex = true;  ///< false: real and imaginary parts, (…, 2)
  std::optional<bool> align_to_window;  ///< without `center`: frames begin where the window begins
};
/// The spectra of frames of `self`, (time) or (batch, time), multiplied by a window: (…, frequency,
/// frame). Errors: a window of another size; a signal shorter than n_fft.
inline Tensor stft(const Tensor& self, int64_t n_fft, const Stft& options = {},
                   Location here = Location::current()) {
  return call<ops::stft_center>(here, self, n_fft, options.hop_length, options.win_length,
                                options.window, options.center, options.pad_mode,
                                options.normalized, options.onesided, options.return_complex,
                                options.align_to_window);
}

/// The signal whose spectra are `self`, (…, frequency, frame): frames are multiplied by the window,
/// added, and divided by the sum of the squared windows. `length`: the samples to return; default
/// all that are known. With `return_complex` the signal is c64. Errors: windows that overlap so
/// little that a sample has the weight 0.
inline Tensor istft(const Tensor& self, int64_t n_fft, const Stft& options = {},
                    std::optional<int64_t> length = {}, bool return_complex = false,
                    Location here = Location::current()) {
  return call<ops::istft>(here, self, n_fft, options.hop_length, options.win_length, options.window,
                          options.center, options.normalized, options.onesided, length,
                          return_complex);
}

}  // namespace taper::eager
