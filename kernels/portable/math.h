// exp, log, tanh, sigmoid and erf for float, free of branches and of library calls, so that loops
// over them vectorise and give the same bits on every machine and at every position of a loop. For
// double, the C library.
//
// The polynomials are those of S. L. Moshier's Cephes Mathematical Library, single precision (expf,
// logf, tanhf, ndtrf: https://www.netlib.org/cephes). Errors against correctly rounded results,
// measured by tests/kernels/math_test: below 1 unit in the last place for exp and log, 1.4 for
// tanh, 2.6 for erf; sigmoid is 0 where exp(-x) overflows, below -88.7.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace taper::portable::math {

inline uint32_t bits_of(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return u;
}
inline float float_of(uint32_t u) {
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

inline float exp(float x) {
  // Beyond these the result is 0 or infinity; NaN passes both comparisons.
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  // x = n ln2 + r, |r| <= ln2 / 2; adding 1.5 * 2^23 rounds to an integer and leaves it in the low
  // bits.
  constexpr float magic = 12582912.0f;
  const float shifted = x * 1.44269504088896341f + magic;
  const float n = shifted - magic;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float y = p * (r * r) + r + 1.0f;
  // 2^n in two steps: n reaches 128 and, for subnormal results, -150.
  const uint32_t k = bits_of(shifted) - bits_of(magic);
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(k) >> 1);
  return y * float_of((half + 127u) << 23) * float_of((k - half + 127u) << 23);
}
inline double exp(double x) { return std::exp(x); }

inline float log(float x) {
  constexpr float smallest_normal = 1.17549435e-38f;
  const bool subnormal = x < smallest_normal;
  const float scaled = subnormal ? x * 8388608.0f : x;  // 2^23
  // scaled = 2^e m, m in [sqrt(1/2), sqrt(2))
  const uint32_t u = bits_of(scaled);
  const float m0 = float_of((u & 0x007fffffu) | 0x3f000000u);  // in [1/2, 1)
  const float e0 = static_cast<float>(static_cast<int32_t>((u >> 23) & 0xffu) - 126) -
                   (subnormal ? 23.0f : 0.0f);
  const bool low = m0 < 0.707106781186547524f;
  const float e = low ? e0 - 1.0f : e0;
  const float r = (low ? m0 + m0 : m0) - 1.0f;
  const float r2 = r * r;
  float p = 7.0376836292e-2f;
  p = p * r - 1.1514610310e-1f;
  p = p * r + 1.1676998740e-1f;
  p = p * r - 1.2420140846e-1f;
  p = p * r + 1.4249322787e-1f;
  p = p * r - 1.6668057665e-1f;
  p = p * r + 2.0000714765e-1f;
  p = p * r - 2.4999993993e-1f;
  p = p * r + 3.3333331174e-1f;
  float y = p * r * r2;
  y = y + e * -2.12194440e-4f;
  y = y - 0.5f * r2;
  float result = (r + y) + e * 0.693359375f;
  result = x == HUGE_VALF ? x : result;
  result = x == 0.0f ? -HUGE_VALF : result;
  return x >= 0.0f ? result : float_of(0x7fc00000u);  // negative or NaN
}
inline double log(double x) { return std::log(x); }

inline float tanh(float x) {
  const float z = std::fabs(x);
  // Near 0 an odd polynomial; elsewhere 1 - 2 / (exp(2z) + 1).
  const float s = x * x;
  float p = -5.70498872745e-3f;
  p = p * s + 2.06390887954e-2f;
  p = p * s - 5.37397155531e-2f;
  p = p * s + 1.33314422036e-1f;
  p = p * s - 3.33332819422e-1f;
  const float small = p * s * x + x;
  const float large = std::copysign(1.0f - 2.0f / (exp(z + z) + 1.0f), x);
  return z < 0.625f ? small : large;
}
inline double tanh(double x) { return std::tanh(x); }

/// 1 / (1 + exp(-x))
template <class T>
inline T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

inline float erf(float x) {
  const float z = std::fabs(x), s = x * x;
  // |x| < 1: x times a polynomial in x^2.
  float p = 7.853861353153693e-5f;
  p = p * s - 8.010193625184903e-4f;
  p = p * s + 5.188327685732524e-3f;
  p = p * s - 2.685381193529856e-2f;
  p = p * s + 1.128358514861418e-1f;
  p = p * s - 3.761262582423300e-1f;
  p = p * s + 1.128379165726710e+0f;
  const float small = x * p;
  // Elsewhere 1 - exp(-x^2) / |x| times a polynomial in 1 / x^2, one for |x| < 2 and one beyond.
  // |x| = 4 gives 1 already.
  const float a = z < 4.0f ? z : 4.0f;
  const float q = 1.0f / (a < 1.0f ? 1.0f : a), t = q * q;
  float near = 2.326819970068386e-2f;
  near = near * t - 1.387039388740657e-1f;
  near = near * t + 3.687424674597105e-1f;
  near = near * t - 5.824733027278666e-1f;
  near = near * t + 6.210004621745983e-1f;
  near = near * t - 4.944515323274145e-1f;
  near = near * t + 3.404879937665872e-1f;
  near = near * t - 2.741127028184656e-1f;
  near = near * t + 5.638259427386472e-1f;
  float far = -1.047766399936249e+1f;
  far = far * t + 1.297719955372516e+1f;
  far = far * t - 7.495518717768503e+0f;
  far = far * t + 2.921019019210786e+0f;
  far = far * t - 1.015265279202700e+0f;
  far = far * t + 4.218463358204948e-1f;
  far = far * t - 2.820767439740514e-1f;
  far = far * t + 5.641895067754075e-1f;
  const float tail = exp(-a * a) * q * (a < 2.0f ? near : far);
  const float large = std::copysign(1.0f - tail, x);
  const float y = z < 1.0f ? small : large;
  return x == x ? y : x;
}
inline double erf(double x) { return std::erf(x); }

}  // namespace taper::portable::math
