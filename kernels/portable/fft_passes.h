// The discrete Fourier transform of several lines side by side, by Stockham's algorithm: passes
// over two buffers, each of which transforms by one factor of the length. Results come out in order
// (Van Loan, "Computational Frameworks for the Fast Fourier Transform", 1.7).
//
// A block holds one element of `lanes` lines at each position: `lanes` real parts, then `lanes`
// imaginary parts. So the innermost loops run over lines, and they are vectors.
#pragma once
#include <cstdint>
#include <utility>

#include "taper/kernels/portable/elements.h"

namespace taper::portable::fft {

/// The largest prime factor of a length that is transformed in passes.
inline constexpr int largest_radix = 31;

/// The factors of a length, one for each pass.
struct Passes {
  int32_t length = 1;
  uint8_t count = 0;
  uint8_t radix[19] = {};  // 3^19 < 2^31 < 3^20, and two factors 2 are one factor 4

  /// Whether `n`, at least 1 and less than 2^31, has no prime factor above `largest_radix`.
  bool factor(index_t n) {
    length = static_cast<int32_t>(n), count = 0;
    const auto divide = [&](int p) {
      for (; n % p == 0; n /= p) radix[count++] = static_cast<uint8_t>(p);
    };
    divide(4);
    for (int p = 2; p <= largest_radix && n > 1; ++p) divide(p);
    return n == 1;
  }
};

/// Floats of a position of a block.
template <int lanes>
inline constexpr index_t position_floats = 2 * lanes;

/// One element of one line.
struct Number {
  float re, im;
};
inline Number operator+(Number a, Number b) { return {a.re + b.re, a.im + b.im}; }
inline Number operator-(Number a, Number b) { return {a.re - b.re, a.im - b.im}; }
inline Number operator*(Number a, Number b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
inline Number operator*(float f, Number a) { return {f * a.re, f * a.im}; }
inline Number conj(Number a) { return {a.re, -a.im}; }
/// -i a: a quarter of a turn in the direction of the transform.
inline Number turned(Number a) { return {a.im, -a.re}; }

template <int lanes>
inline Number get(const float* at) {
  return {at[0], at[lanes]};
}
template <int lanes>
inline void put(float* at, Number a) {
  at[0] = a.re, at[lanes] = a.im;
}

// ---- transforms of 2 to 5 numbers ----

inline void transform(const Number (&a)[2], Number (&b)[2]) {
  b[0] = a[0] + a[1], b[1] = a[0] - a[1];
}
inline void transform(const Number (&a)[3], Number (&b)[3]) {
  const Number sum = a[1] + a[2], side = 0.866025403784438647f * turned(a[1] - a[2]);
  const Number middle = a[0] - 0.5f * sum;
  b[0] = a[0] + sum, b[1] = middle + side, b[2] = middle - side;
}
inline void transform(const Number (&a)[4], Number (&b)[4]) {
  const Number s = a[0] + a[2], t = a[0] - a[2], u = a[1] + a[3], v = turned(a[1] - a[3]);
  b[0] = s + u, b[1] = t + v, b[2] = s - u, b[3] = t - v;
}
inline void transform(const Number (&a)[5], Number (&b)[5]) {
  constexpr float c1 = 0.309016994374947424f, s1 = 0.951056516295153572f;   // of 72 degrees
  constexpr float c2 = -0.809016994374947424f, s2 = 0.587785252292473129f;  // of 144 degrees
  const Number p = a[1] + a[4], q = a[2] + a[3];
  const Number r = turned(a[1] - a[4]), s = turned(a[2] - a[3]);
  const Number m1 = a[0] + (c1 * p + c2 * q), m2 = a[0] + (c2 * p + c1 * q);
  const Number n1 = s1 * r + s2 * s, n2 = s2 * r - s1 * s;
  b[0] = a[0] + (p + q), b[1] = m1 + n1, b[2] = m2 + n2, b[3] = m2 - n2, b[4] = m1 - n1;
}

// ---- one pass ----

/// What a pass reads and writes. `done` is the product of the factors of the passes before.
struct Pass {
  const float* from;
  float* to;
  const float* roots;  ///< of order `length`
  index_t length, done;
};

inline Number root_at(const float* roots, index_t k) { return {roots[2 * k], roots[2 * k + 1]}; }

/// Transforms the numbers that lie `stride` floats apart at `from`, and writes them `distance`
/// floats apart. If `twisted`, multiplies result r by w[r].
template <int lanes, int radix, bool twisted, size_t... r>
inline void butterfly(const float* from, index_t stride, float* to, index_t distance,
                      const Number (&w)[radix], std::index_sequence<r...>) {
  TAPER_LANES
  for (int l = 0; l < lanes; ++l) {
    const Number a[radix] = {get<lanes>(from + static_cast<index_t>(r) * stride + l)...};
    Number b[radix];
    transform(a, b);
    (put<lanes>(to + static_cast<index_t>(r) * distance + l, twisted && r > 0 ? b[r] * w[r] : b[r]),
     ...);
  }
}

template <int lanes, int radix>
inline void short_pass(const Pass& p) {
  constexpr index_t size = position_floats<lanes>;
  constexpr auto each = std::make_index_sequence<radix>{};
  const index_t groups = p.length / (p.done * radix);
  const index_t stride = p.done * groups * size, distance = p.done * size;
  for (index_t g = 0; g < groups; ++g) {
    Number w[radix] = {};
    for (int r = 1; r < radix; ++r) w[r] = root_at(p.roots, g * r * p.done);
    const float* from = p.from + g * distance;
    float* to = p.to + g * radix * distance;
    for (index_t i = 0; i < p.done; ++i, from += size, to += size)
      g == 0 ? butterfly<lanes, radix, false>(from, stride, to, distance, w, each)
             : butterfly<lanes, radix, true>(from, stride, to, distance, w, each);
  }
}

/// One transform of an odd number of elements: sums and differences of each pair that belongs
/// together, times cosines and sines.
template <int lanes>
inline void odd_butterfly(const Pass& p, int radix, index_t group, const float* from,
                          index_t stride, float* to, index_t distance) {
  constexpr int most = largest_radix / 2;
  const int half = radix / 2;
  const index_t order = p.length / radix;  // root `order` of the table is the first of order radix
  float sum[most][2 * lanes], difference[most][2 * lanes];
  float total[2 * lanes];
  for (int l = 0; l < 2 * lanes; ++l) total[l] = from[l];
  for (int r = 0; r < half; ++r) {
    const float *const a = from + (r + 1) * stride, *const b = from + (radix - 1 - r) * stride;
    TAPER_LANES
    for (int l = 0; l < 2 * lanes; ++l) {
      sum[r][l] = a[l] + b[l], difference[r][l] = a[l] - b[l];
      total[l] += sum[r][l];
    }
  }
  for (int t = 1; t <= half; ++t) {
    float even[2 * lanes], odd[2 * lanes] = {};
    for (int l = 0; l < 2 * lanes; ++l) even[l] = from[l];
    for (int r = 0; r < half; ++r) {
      const Number w = root_at(p.roots, (r + 1) * t % radix * order);
      TAPER_LANES
      for (int l = 0; l < 2 * lanes; ++l)
        even[l] += w.re * sum[r][l], odd[l] += w.im * difference[r][l];
    }
    const Number first = root_at(p.roots, group * t * p.done);
    const Number last = root_at(p.roots, group * (radix - t) * p.done);
    float *const x = to + t * distance, *const y = to + (radix - t) * distance;
    TAPER_LANES
    for (int l = 0; l < lanes; ++l) {
      const Number a = get<lanes>(even + l), b = get<lanes>(odd + l);  // a + i b, a - i b
      put<lanes>(x + l, first * Number{a.re - b.im, a.im + b.re});
      put<lanes>(y + l, last * Number{a.re + b.im, a.im - b.re});
    }
  }
  for (int l = 0; l < 2 * lanes; ++l) to[l] = total[l];
}

template <int lanes>
inline void odd_pass(const Pass& p, int radix) {
  constexpr index_t size = position_floats<lanes>;
  const index_t groups = p.length / (p.done * radix);
  const index_t stride = p.done * groups * size, distance = p.done * size;
  for (index_t g = 0; g < groups; ++g)
    for (index_t i = 0; i < p.done; ++i)
      odd_butterfly<lanes>(p, radix, g, p.from + g * distance + i * size, stride,
                           p.to + g * radix * distance + i * size, distance);
}

/// Transforms the block at `from`, which may be `a`. `roots` are those of order `length`. Returns
/// where the result lies: in `from` if the length is 1, else in `a` or `b`.
template <int lanes>
inline float* transform_block(const Passes& passes, const float* roots, float* from, float* a,
                              float* b) {
  Pass p{from, from == a ? b : a, roots, passes.length, 1};
  float* result = from;
  for (int i = 0; i < passes.count; ++i) {
    const int radix = passes.radix[i];
    switch (radix) {
      case 2:
        short_pass<lanes, 2>(p);
        break;
      case 3:
        short_pass<lanes, 3>(p);
        break;
      case 4:
        short_pass<lanes, 4>(p);
        break;
      case 5:
        short_pass<lanes, 5>(p);
        break;
      default:
        odd_pass<lanes>(p, radix);
    }
    result = p.to, p.done *= radix;
    p.from = result, p.to = result == a ? b : a;
  }
  return result;
}

}  // namespace taper::portable::fft
