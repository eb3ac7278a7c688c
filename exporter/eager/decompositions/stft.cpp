// Spectra of parts of a signal, and the signal of such spectra.
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::decompositions {
namespace {

/// How a signal is cut into frames.
struct Frames {
  int64_t n_fft, hop, window;
};
template <const Operator& op>
Frames frames_of(const Arguments<op>& a) {
  const int64_t n = a.template integer<"n_fft">();
  return {n, a.template has<"hop_length">() ? a.template integer<"hop_length">() : n / 4,
          a.template has<"win_length">() ? a.template integer<"win_length">() : n};
}
[[noreturn]] void refuse(const std::string& what) { throw EagerError(what); }
std::string text(int64_t n) { return std::to_string(n); }

void check_window(const Tensor& window, int64_t size, const std::string& op) {
  if (window.defined() && (window.rank() != 1 || proves_less(window.size(0), Dim(size)) ||
                           proves_less(Dim(size), window.size(0))))
    refuse(op + ": window must have win_length = " + text(size) + " elements, it has sizes " +
           to_string(window.sizes()));
}
/// A window of n_fft elements: the given one, or ones, in the middle of zeros. Undefined: all ones.
Tensor whole_window(Tensor window, const Frames& f, DType dtype) {
  if (f.window == f.n_fft) return window;
  if (!window.defined()) window = ones({Dim(f.window)}, dtype);
  const int64_t left = (f.n_fft - f.window) / 2;
  return constant_pad_nd(window, {left, f.n_fft - f.window - left});
}
DType real_dtype_of(const Tensor& t) { return is_complex(t.dtype()) ? DType::f32 : t.dtype(); }

/// (batch, time) -> (batch, frame, n_fft)
Tensor cut_into_frames(Tensor signal, const Frames& f, bool align_to_window) {
  const Dim size = signal.size(1);
  if (f.n_fft < 1 || proves_less(size, Dim(f.n_fft)))
    refuse("stft: n_fft must be in [1, " + size.to_string() + "], the samples of self, not " +
           text(f.n_fft));
  if (f.hop < 1) refuse("stft: hop_length must be positive, not " + text(f.hop));
  if (f.window < 1 || f.window > f.n_fft)
    refuse("stft: win_length must be in [1, n_fft = " + text(f.n_fft) + "], not " + text(f.window));
  if (align_to_window && f.window < f.n_fft) {
    const int64_t left = (f.n_fft - f.window) / 2;
    signal = constant_pad_nd(signal, {left, f.n_fft - f.window - left});
  }
  return unfold(signal, 1, f.n_fft, f.hop);
}

template <const Operator& op>
Tensor spectra(const Arguments<op>& a, const Tensor& self) {
  const Tensor window = a.template tensor<"window">();
  const bool complex = is_complex(self.dtype()) || (window.defined() && is_complex(window.dtype()));
  if (!complex && !a.template has<"return_complex">())
    refuse("stft: return_complex must be given for a real signal");
  const bool onesided = a.template has<"onesided">() ? a.template boolean<"onesided">() : !complex;
  if (complex && onesided)
    refuse("stft: of a complex signal or with a complex window, onesided must be false");
  const Frames f = frames_of(a);
  const bool aligns =
      a.template has<"align_to_window">() && a.template boolean<"align_to_window">();
  Tensor frames = cut_into_frames(self.rank() == 1 ? unsqueeze(self, 0) : self, f, aligns);
  check_window(window, f.window, "stft");
  const Tensor whole = whole_window(window, f, real_dtype_of(self));
  if (whole.defined()) frames = frames * whole;
  const int64_t mode = a.template boolean<"normalized">() ? 1 : 0;
  Tensor result = is_complex(frames.dtype()) ? call<ops::_fft_c2c>(frames, Dims{Dim(2)}, mode, true)
                                             : call<ops::_fft_r2c>(frames, Ints{2}, mode, onesided);
  result = transpose(result, 1, 2);
  if (self.rank() == 1) result = squeeze(result, 0);
  const bool as_pairs =
      a.template has<"return_complex">() && !a.template boolean<"return_complex">();
  return as_pairs ? call<ops::view_as_real>(result) : result;
}
template <const Operator& op>
Tensor checked_signal(const Arguments<op>& a) {
  const Tensor self = a.template tensor<"self">();
  if (self.rank() != 1 && self.rank() != 2)
    refuse("stft: self must be (time) or (batch, time), not " + to_string(self.sizes()));
  if (self.dtype() != DType::f32 && !is_complex(self.dtype()))
    refuse(std::string("stft: self must be f32 or c64, not ") + taper::name_of(self.dtype()) +
           ": cast it to f32");
  return self;
}
/// n_fft / 2 samples more at both ends.
Tensor padded(const Tensor& self, int64_t n_fft, std::string_view mode) {
  if (n_fft < 1) refuse("stft: n_fft must be positive, not " + text(n_fft));
  const Dim side(n_fft / 2);
  const bool one = self.rank() == 1;  // padding that reflects wants a channel
  const Tensor y = pad(unsqueeze(one ? unsqueeze(self, 0) : self, 0), {side, side}, mode);
  return one ? squeeze(squeeze(y, 0), 0) : squeeze(y, 0);
}

/// (channel, frame, n) -> (channel, time): frames lie `hop` apart, and what overlaps is added.
Tensor overlapped(const Tensor& frames, int64_t hop, Dim time) {
  if (is_complex(frames.dtype())) {
    const Tensor parts = permute(call<ops::view_as_real>(frames), {3, 0, 1, 2});
    const Tensor real = overlapped(select(parts, 0, 0), hop, time);
    const Tensor imag = overlapped(select(parts, 0, 1), hop, time);
    return call<ops::view_as_complex>(stack({real, imag}, -1));
  }
  const Tensor columns = transpose(frames, 1, 2);
  const int64_t n = frames.size(2).value();
  const Tensor image =
      call<ops::col2im>(columns, Dims{1, time}, Ints{1, n}, Ints{1, 1}, Ints{0, 0}, Ints{1, hop});
  return squeeze(squeeze(image, 1), 1);
}

/// Throws if the frames of `spectra`, (…, frequency, frame), do not fit.
void check_spectra(const Tensor& spectra, const Frames& f, bool onesided) {
  if (!is_complex(spectra.dtype()))
    refuse("istft: self must be c64, as stft gives it with return_complex=True");
  if (spectra.rank() != 2 && spectra.rank() != 3)
    refuse("istft: self must be (frequency, frame) or (batch, frequency, frame), not " +
           to_string(spectra.sizes()));
  if (proves_equal(spectra.numel(), Dim(0))) refuse("istft: self has no elements");
  const Dim frequencies = spectra.size(-2);
  const int64_t expected = onesided ? f.n_fft / 2 + 1 : f.n_fft;
  if (proves_less(frequencies, Dim(expected)) || proves_less(Dim(expected), frequencies))
    refuse("istft: self must have " + text(expected) + " frequencies for n_fft = " + text(f.n_fft) +
           (onesided ? ", onesided" : ", not onesided") + "; it has " + frequencies.to_string());
  if (f.hop < 1 || f.hop > f.window)
    refuse("istft: hop_length must be in [1, win_length = " + text(f.window) + "], not " +
           text(f.hop));
  if (f.window < 1 || f.window > f.n_fft)
    refuse("istft: win_length must be in [1, n_fft = " + text(f.n_fft) + "], not " +
           text(f.window));
}
/// A sample whose windows are all zero cannot be known.
void check_envelope(const Tensor& envelope) {
  if (envelope.is_traced()) return;  // its elements are not known yet
  if (proves_equal(envelope.numel(), Dim(0)) || min(abs(envelope)).item() < 1e-11)
    refuse(
        "istft: the windows overlap too little: the sum of their squares is 0 at a sample; use "
        "a smaller hop_length, or center=True");
}

/// The frames of a signal, (channel, frame, n_fft).
Tensor frames_of(const Tensor& spectra, const Frames& f, int64_t mode, bool onesided,
                 bool complex) {
  if (complex) return call<ops::_fft_c2c>(spectra, Dims{Dim(2)}, mode, false);
  const Tensor half = onesided ? spectra : slice(spectra, 2, Dim(0), Dim(f.n_fft / 2 + 1));
  return call<ops::_fft_c2r>(half, Ints{2}, mode, Dim(f.n_fft));
}

}  // namespace

TAPER_DECOMPOSITION(stft) { return {spectra(a, checked_signal(a))}; }
TAPER_DECOMPOSITION(stft_center) {
  const Tensor self = checked_signal(a);
  if (!a.boolean<"center">()) return {spectra(a, self)};
  if (a.has<"align_to_window">())
    refuse("stft: align_to_window may only be given with center=False");
  return {spectra(a, padded(self, a.integer<"n_fft">(), a.text<"pad_mode">()))};
}

TAPER_DECOMPOSITION(istft) {
  const Tensor self = a.tensor<"self">();
  const Frames f = frames_of(a);
  const bool onesided = a.has<"onesided">()
                            ? a.boolean<"onesided">()
                            : self.rank() > 1 && !proves_equal(self.size(-2), Dim(f.n_fft));
  check_spectra(self, f, onesided);
  const Tensor given = a.tensor<"window">();
  check_window(given, f.window, "istft");
  const bool complex = a.boolean<"return_complex">();
  if (complex && onesided) refuse("istft: with return_complex=True, onesided must be false");
  if (!complex && given.defined() && is_complex(given.dtype()))
    refuse("istft: a complex window needs return_complex=True");
  Tensor window = whole_window(given, f, DType::f32);
  if (!window.defined()) window = ones({Dim(f.n_fft)}, DType::f32);

  const Tensor spectra = transpose(self.rank() == 2 ? unsqueeze(self, 0) : self, 1, 2);
  const Dim count = spectra.size(1), time = (count - 1) * f.hop + f.n_fft;
  const int64_t mode = a.boolean<"normalized">() ? 1 : 2;
  const Tensor frames = frames_of(spectra, f, mode, onesided, complex) * window;
  const Tensor squares = expand(window * window, {1, count, f.n_fft});

  const Dim side(f.n_fft / 2), start = a.boolean<"center">() ? side : Dim(0);
  const Dim end = a.has<"length">()       ? start + a.integer<"length">()
                  : a.boolean<"center">() ? time - side
                                          : time;
  const Dim known = min(end, time);
  const Tensor envelope = slice(overlapped(squares, f.hop, time), 1, start, known);
  check_envelope(envelope);
  Tensor signal = slice(overlapped(frames, f.hop, time), 1, start, known) / envelope;
  if (!proves_equal(known, end)) signal = constant_pad_nd(signal, {0, end - known});
  return {self.rank() == 2 ? squeeze(signal, 0) : signal};
}

}  // namespace taper::eager::decompositions
