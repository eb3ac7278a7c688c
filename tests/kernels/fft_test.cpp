// The kernels of Fourier transforms, against the sum that defines them, in double.
#include <gmock/gmock.h>

#include <cmath>
#include <complex>
#include <limits>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/eager_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Number = std::complex<double>;
using Numbers = std::vector<Number>;

constexpr double pi = 3.14159265358979323846;

/// (…, n) c64 with random parts.
Tensor random_complex(Ints sizes, int64_t seed = 1) {
  sizes.push_back(2);
  const Tensor parts = random_tensor(sizes, seed, DType::f32);
  sizes.pop_back();
  const std::vector<float> values = parts.to_vector<float>();
  return Tensor::from_bytes(values.data(), values.size() * 4, DType::c64, sizes);
}
std::vector<Complex64> elements(const Tensor& t) {
  const Complex64* const first = t.data<Complex64>();
  return {first, first + t.numel().value()};
}
/// The elements of a dense tensor.
Numbers numbers(const Tensor& t) {
  Numbers all;
  if (t.dtype() == DType::c64)
    for (const Complex64& v : elements(t)) all.emplace_back(v.real, v.imag);
  else
    for (const float v : t.to_vector<float>()) all.emplace_back(v, 0);
  return all;
}

/// The transform along one dimension of (outer, n, inner) by its definition.
Numbers defined(const Numbers& x, int64_t outer, int64_t n, int64_t inner, bool forward) {
  Numbers roots(static_cast<size_t>(n)), y(x.size());
  for (int64_t k = 0; k < n; ++k)
    roots[static_cast<size_t>(k)] =
        std::polar(1.0, (forward ? -2 : 2) * pi * static_cast<double>(k) / static_cast<double>(n));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i)
      for (int64_t k = 0; k < n; ++k) {
        Number sum = 0;
        for (int64_t j = 0; j < n; ++j)
          sum += x[static_cast<size_t>((o * n + j) * inner + i)] *
                 roots[static_cast<size_t>(j * k % n)];
        y[static_cast<size_t>((o * n + k) * inner + i)] = sum;
      }
  return y;
}
/// The elements 0 … kept - 1 of a dimension of (outer, n, inner).
Numbers kept(const Numbers& x, int64_t outer, int64_t n, int64_t inner, int64_t kept) {
  Numbers y;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < kept * inner; ++k)
      y.push_back(x[static_cast<size_t>(o * n * inner + k)]);
  return y;
}
/// The whole spectrum of real lines, from its elements 0 … n / 2.
Numbers completed(const Numbers& x, int64_t outer, int64_t n, int64_t inner) {
  const int64_t h = n / 2 + 1;
  Numbers y(static_cast<size_t>(outer * n * inner));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < n; ++k)
      for (int64_t i = 0; i < inner; ++i) {
        const Number v = x[static_cast<size_t>((o * h + (k < h ? k : n - k)) * inner + i)];
        const bool real = k == 0 || 2 * k == n;
        y[static_cast<size_t>((o * n + k) * inner + i)] = real    ? v.real()
                                                          : k < h ? v
                                                                  : std::conj(v);
      }
  return y;
}
/// The root of the mean squared error, relative to that of `want`.
double error(const Tensor& got, const Numbers& want) {
  const Numbers values = numbers(got);
  EXPECT_EQ(values.size(), want.size());
  double errors = 0, squares = 0;
  for (size_t i = 0; i < std::min(values.size(), want.size()); ++i)
    errors += std::norm(values[i] - want[i]), squares += std::norm(want[i]);
  return squares == 0 ? std::sqrt(errors) : std::sqrt(errors / squares);
}
/// The relative error of a transform of n elements that we accept.
double accepted(int64_t n) { return 1e-7 + 2.5e-8 * std::log2(static_cast<double>(n)); }

Tensor c2c(const Tensor& x, const Dims& dim, bool forward = true, int64_t normalization = 0) {
  return call<ops::_fft_c2c>(x, dim, normalization, forward);
}
Tensor r2c(const Tensor& x, const Ints& dim, bool onesided = true, int64_t normalization = 0) {
  return call<ops::_fft_r2c>(x, dim, normalization, onesided);
}
Tensor c2r(const Tensor& x, const Ints& dim, Dim last, int64_t normalization = 0) {
  return call<ops::_fft_c2r>(x, dim, normalization, last);
}

/// All transforms of lines of n elements.
void expect_right(int64_t outer, int64_t n, int64_t inner) {
  SCOPED_TRACE("(" + std::to_string(outer) + ", " + std::to_string(n) + ", " +
               std::to_string(inner) + ")");
  const Tensor x = random_complex({outer, n, inner}, n);
  const Numbers all = numbers(x);
  EXPECT_LE(error(c2c(x, {1}), defined(all, outer, n, inner, true)), accepted(n));
  EXPECT_LE(error(c2c(x, {1}, false), defined(all, outer, n, inner, false)), accepted(n));
  const Tensor r = random_tensor({outer, n, inner}, n, DType::f32);
  const Numbers spectrum = defined(numbers(r), outer, n, inner, true);
  EXPECT_LE(error(r2c(r, {1}, false), spectrum), accepted(n));
  EXPECT_LE(error(r2c(r, {1}), kept(spectrum, outer, n, inner, n / 2 + 1)), accepted(n));
  const Tensor h = random_complex({outer, n / 2 + 1, inner}, n);
  EXPECT_LE(error(c2r(h, {1}, n),
                  defined(completed(numbers(h), outer, n, inner), outer, n, inner, false)),
            accepted(n));
}

TEST(fft, is_the_sum_that_defines_it_for_every_short_length) {
  for (int64_t n = 1; n <= 130; ++n) expect_right(1, n, 1);
  for (int64_t n = 1; n <= 40; ++n) expect_right(2, n, 5);
}
TEST(fft, transforms_many_lines_side_by_side) {
  for (const int64_t n : {2, 3, 7, 16, 31, 37, 60, 128}) {
    expect_right(19, n, 1);
    expect_right(1, n, 19);
    expect_right(3, n, 16);
  }
}
TEST(fft, takes_lengths_with_small_factors_and_primes) {
  for (const int64_t n : {243, 256, 257, 512, 625, 1000, 1009}) expect_right(1, n, 1);
}

/// A long line: random elements of the spectrum against their sums.
void expect_right_samples(int64_t n) {
  SCOPED_TRACE(n);
  const Tensor x = random_complex({n}, 3);
  const Numbers in = numbers(x), out = numbers(c2c(x, {0}));
  double errors = 0, squares = 0;
  for (int64_t s = 0; s < 12; ++s) {
    const int64_t k = s < 2 ? s : s * 7919 * 104729 % n;
    const Number turn = std::polar(1.0, -2 * pi * static_cast<double>(k) / static_cast<double>(n));
    Number sum = 0;
    for (int64_t j = n; j-- > 0;) sum = sum * turn + in[static_cast<size_t>(j)];  // Horner
    errors += std::norm(out[static_cast<size_t>(k)] - sum), squares += std::norm(sum);
  }
  EXPECT_LE(std::sqrt(errors / squares), accepted(n));
}
TEST(fft, takes_long_lines) {
  for (const int64_t n : {1024, 1331, 2018, 2048, 2187, 3125, 4096, 8192, 10007, 44100, 44101,
                          65536, 65537, 100000, 262144})
    expect_right_samples(n);
}
TEST(fft, comes_back_from_its_inverse) {
  for (const int64_t n : {64, 97, 1000, 1009, 4096, 65536}) {
    const Tensor x = random_complex({3, n}, 4);
    EXPECT_LE(error(c2c(c2c(x, {1}), {1}, false, 2), numbers(x)), 2 * accepted(n)) << n;
    const Tensor r = random_tensor({3, n}, 4, DType::f32);
    EXPECT_LE(error(c2r(r2c(r, {1}), {1}, n, 2), numbers(r)), 2 * accepted(n)) << n;
  }
}

TEST(fft, transforms_several_dimensions_one_after_the_other) {
  const Tensor x = random_complex({5, 6, 9});
  Numbers want = defined(defined(numbers(x), 1, 5, 54, true), 30, 9, 1, true);
  EXPECT_LE(error(c2c(x, {0, 2}), want), accepted(45));
  EXPECT_LE(error(c2c(x, {-1, -3}), want), accepted(45));
  const Tensor r = random_tensor({5, 6, 9}, 1, DType::f32);
  want = defined(defined(numbers(r), 1, 5, 54, true), 5, 6, 9, true);
  EXPECT_LE(error(r2c(r, {0, 1}, false), want), accepted(30));
  EXPECT_LE(error(r2c(r, {0, 1}), kept(want, 5, 6, 9, 4)), accepted(30));
  const Tensor h = random_complex({5, 4, 9});
  for (const int64_t n : {6, 7}) {
    want = defined(completed(defined(numbers(h), 1, 5, 36, false), 5, n, 9), 5, n, 9, false);
    EXPECT_LE(error(c2r(h, {0, 1}, n), want), accepted(35));
  }
}
TEST(fft, divides_by_the_number_of_elements_or_its_root) {
  const Tensor x = random_complex({4, 6, 3});
  const double scales[] = {1, 1 / std::sqrt(24.0), 1 / 24.0};
  for (int mode = 0; mode < 3; ++mode) {
    Numbers want = defined(defined(numbers(x), 1, 4, 18, true), 4, 6, 3, true);
    for (Number& v : want) v *= scales[mode];
    EXPECT_LE(error(c2c(x, {0, 1}, true, mode), want), accepted(24)) << mode;
    const Tensor r = random_tensor({4, 6, 3}, 2, DType::f32);
    want = defined(defined(numbers(r), 1, 4, 18, true), 4, 6, 3, true);
    for (Number& v : want) v *= scales[mode];
    EXPECT_LE(error(r2c(r, {0, 1}, false, mode), want), accepted(24)) << mode;
  }
}
TEST(fft, transforms_impulses_to_constants_and_back) {
  const Tensor impulse = Tensor::from<float>({1, 0, 0, 0, 0, 0, 0, 0}, {8});
  for (const Number& v : numbers(r2c(impulse, {0}, false))) EXPECT_EQ(v, Number(1, 0));
  const Tensor ones_ = Tensor::from<float>(std::vector<float>(96, 1), {96});
  const Numbers spectrum = numbers(r2c(ones_, {0}));
  EXPECT_EQ(spectrum[0], Number(96, 0));
  for (size_t k = 1; k < spectrum.size(); ++k) EXPECT_LE(std::abs(spectrum[k]), 1e-12) << k;
}

TEST(fft, takes_tensors_without_elements_and_no_dimensions) {
  EXPECT_EQ(to_string(c2c(random_complex({3, 0}), {1}).sizes()), "(3, 0)");
  EXPECT_EQ(to_string(r2c(random_tensor({0, 5}, 1, DType::f32), {1}).sizes()), "(0, 3)");
  EXPECT_EQ(to_string(r2c(random_tensor({0, 5}, 1, DType::f32), {0, 1}, false).sizes()), "(0, 5)");
  EXPECT_EQ(to_string(c2r(random_complex({2, 3, 0}), {0, 1}, 5).sizes()), "(2, 5, 0)");
  const Tensor x = random_complex({2, 3});
  EXPECT_EQ(numbers(c2c(x, {})), numbers(x));
}
TEST(fft, ignores_imaginary_parts_that_a_real_line_does_not_have) {
  for (const int64_t n : {7, 8, 130}) {
    const Tensor h = random_complex({n / 2 + 1}, 5);
    std::vector<Complex64> values = elements(h);
    values[0].imag = 7;
    if (n % 2 == 0) values.back().imag = -3;
    const Tensor changed =
        Tensor::from_bytes(values.data(), values.size() * 8, DType::c64, {n / 2 + 1});
    EXPECT_EQ(numbers(c2r(changed, {0}, n)), numbers(c2r(h, {0}, n))) << n;
  }
}
TEST(fft, keeps_infinities_and_nan_in_their_lines) {
  std::vector<float> values = random_tensor({20, 64}, 6, DType::f32).to_vector<float>();
  const Numbers before = numbers(r2c(Tensor::from<float>(values, {20, 64}), {1}));
  values[64 * 7 + 3] = std::numeric_limits<float>::infinity();
  values[64 * 11 + 9] = std::numeric_limits<float>::quiet_NaN();
  const Numbers after = numbers(r2c(Tensor::from<float>(values, {20, 64}), {1}));
  for (int64_t line = 0; line < 20; ++line)
    for (int64_t k = 0; k < 33; ++k) {
      const auto i = static_cast<size_t>(line * 33 + k);
      if (line == 7 || line == 11)
        EXPECT_FALSE(std::isfinite(after[i].real())) << line << " " << k;
      else
        EXPECT_EQ(after[i], before[i]) << line << " " << k;
    }
}

template <class Call>
void expect_refusal(const Call& call, const std::string& message) {
  EXPECT_THAT(call, ThrowsMessage<EagerError>(HasSubstr(message)));
}
TEST(fft, refuses_what_it_cannot_transform) {
  const Tensor x = random_complex({3, 4}), r = random_tensor({3, 4}, 1, DType::f32);
  expect_refusal([&] { c2c(x, {0, -2}); }, "dim 0 is named twice: dims must be unique");
  expect_refusal([&] { c2c(x, {2}); }, "dim 2 is outside [-2, 2)");
  expect_refusal([&] { c2c(x, {0, 1, 1}); }, "3 dims are more than the 2 dimensions of self");
  expect_refusal([&] { c2c(x, {0}, true, 3); }, "normalization must be 0 (none), 1 (by the root");
  expect_refusal([&] { c2c(r, {0}); }, "self must be c64");
  expect_refusal([&] { r2c(r, {}); }, "must transform at least one dimension");
  expect_refusal(
      [&] {
        r2c(random_tensor({3, 0}, 1, DType::f32), {1});
      },
      "cannot transform a dimension of size 0");
  expect_refusal([&] { r2c(random_tensor({4}, 1, DType::f64), {0}); }, "cast it to f32");
  expect_refusal([&] { c2r(x, {1}, 0); }, "last_dim_size 0 must be at least 1");
  expect_refusal([&] { c2r(x, {1}, 9); },
                 "self has 4 elements along the last dim, last_dim_size "
                 "asks for 5");
  expect_refusal([&] { c2r(r, {1}, 6); }, "self must be c64");
}

}  // namespace
}  // namespace taper::eager
