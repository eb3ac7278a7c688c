// Roots of unity e^(-2 pi i k / n), computed in double and rounded to float once.
#pragma once
#include <cmath>
#include <cstdint>

#include "taper/runtime/core/span.h"

namespace taper::portable::fft {

/// A complex number while roots are computed.
struct Root {
  double re, im;
};
inline Root operator*(Root a, Root b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/// e^(-2 pi i k / n) for 0 <= k < n < 2^60. Integers reduce the angle to an eighth of the circle,
/// so multiples of a quarter are exact.
inline Root root(uint64_t k, uint64_t n) {
  const uint64_t octant = 8 * k / n, rest = 8 * k % n;
  const double angle = 0.78539816339744830962 / static_cast<double>(n) *
                       static_cast<double>(octant % 2 == 0 ? rest : n - rest);
  const double c = std::cos(angle), s = std::sin(angle);
  switch (octant) {
    case 0:
      return {c, -s};
    case 1:
      return {s, -c};
    case 2:
      return {-s, -c};
    case 3:
      return {-c, -s};
    case 4:
      return {-c, s};
    case 5:
      return {-s, c};
    case 6:
      return {s, c};
    default:
      return {c, s};
  }
}

/// Writes the roots k = 0 … count - 1 of order n: real and imaginary parts side by side. Every
/// eighth root is the one before times a constant, in double: far more exact than a float.
inline void write_roots(index_t count, index_t n, float* to) {
  constexpr int chains = 8;
  double re[chains], im[chains];
  for (int c = 0; c < chains; ++c) {
    const Root r = root(static_cast<uint64_t>(c % n), static_cast<uint64_t>(n));
    re[c] = r.re, im[c] = r.im;
  }
  const Root step = root(static_cast<uint64_t>(chains % n), static_cast<uint64_t>(n));
  for (index_t k = 0; k < count; k += chains) {
    const int width = count - k < chains ? static_cast<int>(count - k) : chains;
    for (int c = 0; c < width; ++c) {
      to[2 * (k + c)] = static_cast<float>(re[c]);
      to[2 * (k + c) + 1] = static_cast<float>(im[c]);
    }
    for (int c = 0; c < chains; ++c) {
      const double x = re[c] * step.re - im[c] * step.im;
      im[c] = re[c] * step.im + im[c] * step.re, re[c] = x;
    }
  }
}

/// Writes e^(-pi i k^2 / n) for k < n, in the same form. n < 2^31.
inline void write_chirp(index_t n, float* to) {
  constexpr index_t restart = 32;  // the recurrence's error grows with the square of its length
  const uint64_t order = 2 * static_cast<uint64_t>(n);
  const Root turn = root(1 % static_cast<uint64_t>(n), static_cast<uint64_t>(n));
  Root value{1, 0}, factor{1, 0};
  for (index_t k = 0; k < n; ++k) {
    if (k % restart == 0) {
      const uint64_t i = static_cast<uint64_t>(k);
      value = root(i * i % order, order);
      factor = root((2 * i + 1) % order, order);
    }
    to[2 * k] = static_cast<float>(value.re), to[2 * k + 1] = static_cast<float>(value.im);
    value = value * factor;  // (k + 1)^2 = k^2 + (2 k + 1)
    factor = factor * turn;
  }
}

}  // namespace taper::portable::fft
