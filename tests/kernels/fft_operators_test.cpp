// Fourier transforms with PyTorch's arguments, spectra of parts of a signal, their derivatives, and
// programs of them. fft_test.cpp compares the kernels with the sums that define them.
#include <gmock/gmock.h>

#include <cmath>

#include "taper/exporter/eager/ops/complex.h"
#include "taper/runtime/extension/audio/wav.h"
#include "taper/tests/kernels/program_check.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using Values = std::vector<Tensor>;

/// (…) c64 with random parts.
Tensor random_complex(Ints sizes, int64_t seed = 1) {
  sizes.push_back(2);
  return view_as_complex(random_tensor(sizes, seed));
}
/// The largest difference, of real and of imaginary parts.
double distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(to_string(a.sizes()), to_string(b.sizes()));
  EXPECT_EQ(a.dtype(), b.dtype());
  if (a.dtype() == DType::c64) return distance(view_as_real(a), view_as_real(b));
  return a.numel().value() == 0 ? 0 : max(abs(a - b)).item();
}
#define EXPECT_CLOSE(a, b) EXPECT_LE(distance(a, b), 2e-6)

TEST(fft_operators, are_inverses_of_each_other_with_every_norm) {
  const Tensor x = random_complex({3, 10}), r = random_tensor({3, 10});
  for (const FftNorm norm :
       {FftNorm(), FftNorm("backward"), FftNorm("forward"), FftNorm("ortho")}) {
    EXPECT_CLOSE(fft_ifft(fft_fft(x, {}, -1, norm), {}, -1, norm), x);
    EXPECT_CLOSE(fft_irfft(fft_rfft(r, {}, -1, norm), {}, -1, norm), r);
    EXPECT_CLOSE(fft_irfft(fft_rfft(r, {}, 0, norm), 3, 0, norm), r);
    EXPECT_CLOSE(fft_hfft(fft_ihfft(r, {}, -1, norm), {}, -1, norm), r);
    EXPECT_CLOSE(fft_ifft2(fft_fft2(x, {}, {-2, -1}, norm), {}, {-2, -1}, norm), x);
    EXPECT_CLOSE(fft_irfft2(fft_rfft2(r, {}, {-2, -1}, norm), {}, {-2, -1}, norm), r);
    EXPECT_CLOSE(fft_ifftn(fft_fftn(x, {}, {}, norm), {}, {}, norm), x);
    EXPECT_CLOSE(fft_irfftn(fft_rfftn(r, {}, {}, norm), {}, {}, norm), r);
    EXPECT_CLOSE(fft_hfftn(fft_ihfftn(r, {}, {}, norm), {}, {}, norm), r);
    EXPECT_CLOSE(fft_hfft2(fft_ihfft2(r, {}, {-2, -1}, norm), {}, {-2, -1}, norm), r);
  }
}
TEST(fft_operators, follow_from_one_another) {
  const Tensor x = random_complex({4, 6}), r = random_tensor({4, 6});
  EXPECT_CLOSE(fft_fft2(x), fft_fft(fft_fft(x, {}, 0), {}, 1));
  EXPECT_CLOSE(fft_fftn(x), fft_fft2(x));
  EXPECT_CLOSE(fft_fft(r), fft_fft(complex(r, zeros_like(r))));
  EXPECT_CLOSE(fft_ifft(r), fft_ifft(complex(r, zeros_like(r))));
  EXPECT_CLOSE(fft_rfft(r), slice(fft_fft(r), 1, 0, 4));
  EXPECT_CLOSE(fft_rfft2(r), slice(fft_fft2(r), 1, 0, 4));
  EXPECT_CLOSE(fft_ihfft(r), conj(fft_rfft(r, {}, -1, "forward")));
  EXPECT_CLOSE(fft_hfft(x), fft_irfft(conj(x), {}, -1, "forward"));
  EXPECT_CLOSE(fft_hfft2(x), fft_hfft(fft_fft(x, {}, 0), {}, 1));
  EXPECT_CLOSE(fft_irfft(r), fft_irfft(complex(r, zeros_like(r))));
}
TEST(fft_operators, pad_with_zeros_or_cut) {
  const Tensor x = random_complex({2, 5}), r = random_tensor({2, 5});
  EXPECT_CLOSE(fft_fft(x, 7), fft_fft(cat({x, zeros_like(slice(x, 1, 0, 2))}, 1)));
  EXPECT_CLOSE(fft_fft(x, 3), fft_fft(slice(x, 1, 0, 3)));
  EXPECT_CLOSE(fft_rfft(r, 8), fft_rfft(constant_pad_nd(r, {0, 3})));
  EXPECT_CLOSE(fft_irfft(x, 4), fft_irfft(slice(x, 1, 0, 3)));
  EXPECT_CLOSE(fft_fftn(r, Dims{3, -1}), fft_fftn(constant_pad_nd(r, {0, 0, 0, 1})));
  EXPECT_CLOSE(fft_rfftn(r, Dims{4}), fft_rfft(slice(r, 1, 0, 4)));
  EXPECT_EQ(to_string(fft_irfftn(x, Dims{3, 9}).sizes()), "(3, 9)");
  EXPECT_EQ(to_string(fft_irfftn(x, Dims{3, -1}).sizes()), "(3, 8)");
  EXPECT_EQ(to_string(fft_hfft(x).sizes()), "(2, 8)");
}
TEST(fft_operators, cast_integers) {
  const Tensor i = Tensor::from<int64_t>({1, -2, 3}, {3});
  EXPECT_CLOSE(fft_fft(i), fft_fft(to(i, DType::f32)));
  EXPECT_CLOSE(fft_irfft(i), fft_irfft(to(i, DType::f32)));
  const Tensor b = Tensor::from<bool>({true, false, true}, {3});
  EXPECT_CLOSE(fft_rfft(b), fft_rfft(to(b, DType::f32)));
}
TEST(fft_operators, move_frequency_zero_to_the_middle_and_back) {
  const Tensor x = arange(0, 5), y = reshape(arange(0, 12), {3, 4});
  EXPECT_EQ(fft_fftshift(x).to_vector<int64_t>(), (std::vector<int64_t>{3, 4, 0, 1, 2}));
  EXPECT_EQ(fft_ifftshift(x).to_vector<int64_t>(), (std::vector<int64_t>{2, 3, 4, 0, 1}));
  expect_same_bits(fft_ifftshift(fft_fftshift(y)), y);
  EXPECT_EQ(select(fft_fftshift(y, Ints{1}), 0, 0).to_vector<int64_t>(),
            (std::vector<int64_t>{2, 3, 0, 1}));
}
TEST(fft_operators, refuse_bad_arguments) {
  const Tensor r = random_tensor({2, 3}), x = random_complex({2, 3});
  EXPECT_THROW_MESSAGE(fft_fft(r, 0), "fft_fft: cannot transform 0 elements");
  EXPECT_THROW_MESSAGE(fft_fft(random_tensor({2, 0})), "fft_fft: cannot transform 0 elements");
  EXPECT_THROW_MESSAGE(fft_fft(random_tensor({})), "fft_fft: self has no dimensions");
  EXPECT_THROW_MESSAGE(fft_fft(r, {}, 2), "fft_fft: dim 2 is outside [-2, 2)");
  EXPECT_THROW_MESSAGE(fft_fft(r, {}, 0, "unit"),
                       "fft_fft: norm must be forward, backward or ortho, not unit");
  EXPECT_THROW_MESSAGE(fft_fft(random_tensor({3}, 1, DType::f64)),
                       "fft_fft: has no complex numbers for f64: cast self to f32");
  EXPECT_THROW_MESSAGE(fft_rfft(x), "fft_rfft: needs a real tensor, not c64");
  EXPECT_THROW_MESSAGE(fft_irfft(random_complex({1})), "fft_irfft: cannot transform 0 elements");
  EXPECT_THROW_MESSAGE(fft_fftn(r, {}, Ints{0, -2}), "dim 0 is named twice");
  EXPECT_THROW_MESSAGE(fft_fftn(r, Dims{2}, Ints{0, 1}), "s has 1 sizes for 2 dims");
  EXPECT_THROW_MESSAGE(fft_fftn(r, Dims{2, 2, 2}), "got 3 sizes for (2, 3)");
  EXPECT_THROW_MESSAGE(fft_rfftn(r, {}, Ints{}), "must transform at least one dimension");
  EXPECT_EQ(fft_fftn(r, {}, Ints{}).dtype(), DType::c64);
}

// ---- stft

/// The frames of `stft` by hand: (frame, n).
Tensor frames_of(const Tensor& signal, int64_t n, int64_t hop) {
  Values frames;
  for (int64_t t = 0; t + n <= signal.size(0).value(); t += hop)
    frames.push_back(slice(signal, 0, t, t + n));
  return stack(frames, 0);
}
TEST(stft, is_the_spectrum_of_each_windowed_frame) {
  const Tensor x = random_tensor({50}), w = hann_window(12);
  Stft options{.hop_length = 5, .win_length = 12, .window = w, .center = false};
  const Tensor whole = constant_pad_nd(w, {2, 2});
  EXPECT_CLOSE(stft(x, 16, options), transpose(fft_rfft(frames_of(x, 16, 5) * whole), 0, 1));
  options.normalized = true;
  EXPECT_CLOSE(stft(x, 16, options),
               transpose(fft_rfft(frames_of(x, 16, 5) * whole, {}, -1, "ortho"), 0, 1));
  options.onesided = false;
  EXPECT_EQ(to_string(stft(x, 16, options).sizes()), "(16, 7)");
  options.return_complex = false;
  EXPECT_EQ(to_string(stft(x, 16, options).sizes()), "(16, 7, 2)");
}
TEST(stft, pads_both_ends_so_that_frames_have_their_middle_at_multiples_of_the_hop) {
  const Tensor x = random_tensor({2, 40});
  const Tensor sides = pad(unsqueeze(x, 0), {8, 8}, "reflect");
  const Tensor padded = squeeze(sides, 0);
  EXPECT_CLOSE(stft(x, 16), stft(padded, 16, {.center = false}));
  EXPECT_CLOSE(stft(x, 16, {.pad_mode = "constant"}),
               stft(constant_pad_nd(x, {8, 8}), 16, {.center = false}));
  EXPECT_CLOSE(select(stft(x, 16), 0, 1), stft(select(x, 0, 1), 16));
}
TEST(stft, begins_frames_where_a_short_window_begins) {
  const Tensor x = random_tensor({40});
  EXPECT_CLOSE(stft(x, 16, {.win_length = 8, .center = false, .align_to_window = true}),
               stft(constant_pad_nd(x, {4, 4}), 16, {.win_length = 8, .center = false}));
}
TEST(stft, shows_a_tone_at_its_frequency) {
  const Tensor time = arange(0, 256, 1, DType::f32);
  const Tensor tone = sin(time * (2 * 3.14159265358979 * 5 / 32));
  const Tensor size = abs(stft(tone, 32, {.hop_length = 32, .center = false}));
  EXPECT_CLOSE(select(size, 0, 5) / 16, ones({8}));
  EXPECT_LE(max(select(size, 0, 6)).item(), 1e-4);
}
TEST(stft, refuses_bad_arguments) {
  const Tensor x = random_tensor({2, 40});
  const Stft plain{.center = false};
  EXPECT_THROW_MESSAGE(stft(x, 50, plain), "stft: n_fft must be in [1, 40], the samples of self");
  EXPECT_THROW_MESSAGE(stft(x, 0), "stft: n_fft must be positive, not 0");
  EXPECT_THROW_MESSAGE(stft(x, 16, {.hop_length = 0}), "stft: hop_length must be positive, not 0");
  EXPECT_THROW_MESSAGE(stft(x, 16, {.win_length = 17}), "win_length must be in [1, n_fft = 16]");
  EXPECT_THROW_MESSAGE(stft(x, 16, {.window = ones({15})}), "window must have win_length = 16");
  EXPECT_THROW_MESSAGE(stft(x, 16, {.return_complex = {}}), "return_complex must be given");
  EXPECT_THROW_MESSAGE(stft(random_complex({40}), 16, {.center = false, .onesided = true}),
                       "onesided must be false");
  EXPECT_THROW_MESSAGE(stft(x, 16, {.align_to_window = true}), "only be given with center=False");
  EXPECT_THROW_MESSAGE(stft(to(x, DType::f64), 16), "must be f32 or c64, not f64: cast it to f32");
  EXPECT_THROW_MESSAGE(stft(random_tensor({1, 2, 40}), 16), "must be (time) or (batch, time)");
}

// ---- istft

TEST(istft, gives_the_signal_back) {
  const Tensor x = random_tensor({2, 96}), w = hann_window(16);
  for (const bool normalized : {false, true})
    for (const bool onesided : {false, true}) {
      const Stft options{.window = w, .normalized = normalized, .onesided = onesided};
      EXPECT_CLOSE(istft(stft(x, 16, options), 16, options), x);
    }
  const Stft narrow_{.hop_length = 3, .win_length = 12, .window = hann_window(12)};
  EXPECT_CLOSE(istft(stft(x, 16, narrow_), 16, narrow_, 96), x);
  EXPECT_CLOSE(istft(stft(x, 16, {.center = false}), 16, {.center = false}), x);
  EXPECT_CLOSE(istft(stft(select(x, 0, 0), 16), 16), select(x, 0, 0));
}
TEST(istft, gives_complex_signals_back) {
  const Tensor x = random_complex({2, 96});
  const Stft options{.window = hann_window(16), .pad_mode = "constant", .onesided = false};
  EXPECT_CLOSE(istft(stft(x, 16, options), 16, options, {}, true), x);
}
TEST(istft, cuts_and_pads_to_the_length) {
  const Tensor x = random_tensor({96}), s = stft(x, 16, {.window = hann_window(16)});
  const Stft options{.window = hann_window(16)};
  EXPECT_CLOSE(istft(s, 16, options, 50), slice(x, 0, 0, 50));
  EXPECT_CLOSE(slice(istft(s, 16, options, 120), 0, 0, 96), x);
  EXPECT_EQ(to_string(istft(s, 16, options, 120).sizes()), "(120)");
}
TEST(istft, refuses_bad_arguments) {
  const Tensor s = stft(random_tensor({96}), 16);
  EXPECT_THROW_MESSAGE(istft(abs(s), 16), "istft: self must be c64");
  EXPECT_THROW_MESSAGE(istft(s, 18), "self must have 10 frequencies for n_fft = 18, onesided");
  EXPECT_THROW_MESSAGE(istft(s, 16, {.hop_length = 17}), "hop_length must be in [1, win_length");
  EXPECT_THROW_MESSAGE(istft(s, 16, {.window = ones({3})}), "window must have win_length = 16");
  EXPECT_THROW_MESSAGE(istft(s, 16, {.window = hann_window(16), .center = false}),
                       "the windows overlap too little");
  EXPECT_THROW_MESSAGE(istft(s, 16, {}, {}, true), "onesided must be false");
  EXPECT_THROW_MESSAGE(istft(slice(s, 1, 0, 0), 16), "self has no elements");
}
TEST(istft, gives_speech_back) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "audio/jfk.wav");
  const Result<audio::Sound> read = audio::read_wav(file.string());
  ASSERT_TRUE(read.ok());
  const audio::Sound& sound = read.value();
  const auto samples = static_cast<int64_t>(sound.samples.size());
  const Tensor x = Tensor::from<float>(sound.samples, {samples});
  const Stft options{.hop_length = 160, .window = hann_window(400)};
  EXPECT_CLOSE(istft(stft(x, 400, options), 400, options, samples), x);
}

// ---- derivatives: a transform is linear, so <f(x), y> = <x, gradient for y>

double dot_of(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::c64) return dot_of(view_as_real(a), view_as_real(b));
  return sum(to(a, DType::f64) * to(b, DType::f64)).item();
}
void expect_adjoint(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  x.set_requires_grad();
  const Tensor result = f(x);
  Ints sizes;
  for (const Dim& d : result.sizes()) sizes.push_back(d.value());
  const Tensor dy =
      result.dtype() == DType::c64 ? random_complex(sizes, 7) : random_tensor(sizes, 7);
  const Tensor dx = grad({result}, {x}, {dy})[0];
  ASSERT_EQ(dx.dtype(), x.dtype());
  const double forward = dot_of(result, dy), backward = dot_of(x, dx);
  EXPECT_NEAR(forward, backward, 1e-5 * (1 + std::fabs(forward)));
}
TEST(fft_derivatives, are_the_adjoint_transforms) {
  for (const int64_t n : {5, 6}) {
    expect_adjoint([](const Tensor& x) { return fft_fft(x); }, random_complex({2, n}));
    expect_adjoint([](const Tensor& x) { return fft_ifft(x, 4); }, random_complex({2, n}));
    expect_adjoint([](const Tensor& x) { return fft_fft(x); }, random_tensor({2, n}));
    expect_adjoint([](const Tensor& x) { return fft_rfft(x); }, random_tensor({2, n}));
    expect_adjoint([](const Tensor& x) { return fft_rfft(x, {}, 0, "ortho"); },
                   random_tensor({n, 3}));
    expect_adjoint([](const Tensor& x) { return fft_irfft(x); }, random_complex({2, n}));
    expect_adjoint([](const Tensor& x) { return fft_irfft(x, 7, 0); }, random_complex({n, 2}));
    expect_adjoint([](const Tensor& x) { return fft_hfft(x); }, random_complex({2, n}));
    expect_adjoint([](const Tensor& x) { return fft_ihfft(x); }, random_tensor({2, n}));
    expect_adjoint([](const Tensor& x) { return fft_rfftn(x); }, random_tensor({3, n, 4}));
    expect_adjoint([](const Tensor& x) { return fft_irfft2(x); }, random_complex({3, n}));
    expect_adjoint(
        [](const Tensor& x) {
          return fft_fftn(x, {}, Ints{0, 2}, "forward");
        },
        random_complex({3, 2, n}));
  }
  expect_adjoint([](const Tensor& x) { return fft_rfft(x); }, random_tensor({3, 1}));
  expect_adjoint([](const Tensor& x) { return fft_irfft(x, 1); }, random_complex({3, 1}));
  const Stft options{.window = hann_window(16)};
  expect_adjoint([&](const Tensor& x) { return stft(x, 16, options); }, random_tensor({2, 40}));
  expect_adjoint([&](const Tensor& x) { return istft(x, 16, options); }, random_complex({9, 8}));
}
TEST(fft_derivatives, can_be_differentiated_again) {
  const Tensor x = random_tensor({8});
  x.set_requires_grad();
  const Tensor power = sum(square(abs(fft_rfft(x))));
  const Tensor dx = grad({power}, {x}, {}, true)[0];
  const Tensor dxx = grad({sum(square(dx))}, {x})[0];
  // the power is x' A x with A symmetric, so its gradient is 2 A x, and theirs 8 A A x
  const Tensor ax = dx.detach() / 2;
  ax.set_requires_grad();
  const Tensor aax = grad({sum(square(abs(fft_rfft(ax))))}, {ax})[0] / 2;
  EXPECT_LE(distance(dxx, aax * 8), 1e-3);
}

// ---- programs

/// What a model of speech begins with: logarithms of the power in bands.
Tensor log_bands(const Tensor& signal, const Tensor& bands) {
  const Tensor spectrum = stft(signal, 32, {.hop_length = 8, .window = hann_window(32)});
  return log(clamp_min(matmul(bands, square(abs(spectrum))), 1e-5));
}
TEST(fft_programs, give_the_bits_of_eager) {
  const auto f = [](const Values& in) {
    return Values{log_bands(in[0], in[1]), fft_irfft(fft_rfft(in[0], 50)), real(fft_fft2(in[0])),
                  fft_fftshift(in[0])};
  };
  const Values call{random_tensor({2, 60}), abs(random_tensor({5, 17}, 2))};
  expect_same_bits_in_program(f, {input("x", {2, 60}), input("bands", {5, 17})}, {call});
}
TEST(fft_programs, take_signals_of_any_length) {
  const Dim batch = Dim::symbol("batch", 1, 4), time = Dim::symbol("time", 33, 100);
  const auto f = [](const Values& in) {
    const Tensor x = in[0];
    const Stft options{.hop_length = 8, .window = hann_window(32)};
    return Values{log_bands(x, in[1]), fft_irfft(fft_rfft(x), x.size(1)), imag(fft_fft(x)),
                  abs(fft_fftn(x)), istft(stft(x, 32, options), 32, options)};
  };
  std::vector<Values> calls;
  for (const int64_t n : {33, 64, 67, 97, 100})
    calls.push_back({random_tensor({n % 4 + 1, n}), abs(random_tensor({5, 17}, 2))});
  expect_same_bits_in_program(f, {input("x", {batch, time}), input("bands", {5, 17})}, calls);
}
TEST(fft_programs, train_through_transforms) {
  const auto f = [](const Values& in) {
    const Tensor w = in[1];
    w.set_requires_grad();
    const Tensor y = fft_irfft(fft_rfft(in[0]) * fft_rfft(w), 12);
    return Values{grad({sum(square(y))}, {w})[0]};
  };
  expect_same_bits_in_program(f, {input("x", {3, 12}), input("w", {12})},
                              {{random_tensor({3, 12}), random_tensor({12}, 2)}});
}

}  // namespace
}  // namespace taper::eager
