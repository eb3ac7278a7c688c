// exp, log, pow, sin, cos, tanh, sigmoid and erf for float, without branches and library calls. So
// loops over them vectorise, and they give the same bits on every machine and at every position of
// a loop. For double the C library is used.
//
// Unless said otherwise, the polynomials are those of S. L. Moshier's Cephes Mathematical Library,
// single precision (expf, logf, sinf, tanhf: https://www.netlib.org/cephes). Errors against
// correctly rounded results, measured by tests/kernels/math_test: below 1 unit in the last place
// for log and pow (0.6), 1.2 for exp, 1.5 for sin and cos, 1.6 for tanh, 1.5 for erf, 2 for
// sigmoid. sigmoid is 0 below -88.4, where it is no normal number.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

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
inline uint64_t bits_of(double x) {
  uint64_t u;
  std::memcpy(&u, &x, 8);
  return u;
}
inline double double_of(uint64_t u) {
  double x;
  std::memcpy(&x, &u, 8);
  return x;
}

/// x, but at least `low` < 0 and at most `high` > 0. NaN becomes a bound. Works on bits: vectors
/// have minima of integers everywhere, but compilers make two steps of a choice between numbers.
inline float between(float x, float low, float high) {
  const int32_t bits = static_cast<int32_t>(bits_of(x)), most = static_cast<int32_t>(bits_of(high));
  const int32_t below = bits < most ? bits : most;
  const uint32_t u = static_cast<uint32_t>(below), least = bits_of(low);
  return float_of(u < least ? u : least);
}
/// y where x is a number, otherwise NaN.
inline float unless_nan(float x, float y) {
  const uint32_t mask = x == x ? 0u : 0xffffffffu;
  return float_of(bits_of(y) | (bits_of(x) & mask));
}

/// How a formula multiplies and adds: with two roundings, or with one if the processor has an
/// instruction for it.
struct Separate {
  template <class T>
  static T multiply_add(T a, T b, T c) {
    return a * b + c;
  }
};
struct Fused {
  static float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }
};

/// With x = n ln2 + r and |r| <= ln2 / 2: returns exp(r) - 1, and n in the low bits of `shifted`.
template <class M>
inline float reduced_expm1(float x, uint32_t& shifted) {
  // adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits
  constexpr float magic = 12582912.0f;
  const float y = M::multiply_add(x, 1.44269504088896341f, magic), n = y - magic;
  shifted = bits_of(y);
  const float r = M::multiply_add(n, 2.12194440e-4f, M::multiply_add(n, -0.693359375f, x));
  float p = 1.9875691500e-4f;
  p = M::multiply_add(p, r, 1.3981999507e-3f);
  p = M::multiply_add(p, r, 8.3334519073e-3f);
  p = M::multiply_add(p, r, 4.1665795894e-2f);
  p = M::multiply_add(p, r, 1.6666665459e-1f);
  p = M::multiply_add(p, r, 5.0000001201e-1f);
  return M::multiply_add(p, r * r, r);
}
/// 2^n for n in [-126, 127], 0 for n = -127, infinity for n = 128. `shifted` holds the bits of n
/// + 1.5 * 2^23.
inline float power_of_two(uint32_t shifted) { return float_of((shifted << 23) + 0x3f800000u); }

/// q with 2^r = 1 + ln2 r + q r^2 for |r| <= 1/2, so that 2^r has a relative error of 2e-9 besides
/// rounding. Our own fit.
template <class M>
inline float power_of_two_curve(float r) {
  float q = 1.534581197e-4f;
  q = M::multiply_add(q, r, 1.339993120e-3f);
  q = M::multiply_add(q, r, 9.618488957e-3f);
  q = M::multiply_add(q, r, 5.550328777e-2f);
  return M::multiply_add(q, r, 2.402264689e-1f);
}
inline constexpr float log_of_two = 6.931472057e-1f;
template <class M>
inline float power_of_two_near(float r) {
  const float slope = M::multiply_add(power_of_two_curve<M>(r), r, log_of_two);
  return M::multiply_add(slope, r, 1.0f);
}

/// 2^r with one step less, within a relative error of 8e-8.
template <class M>
inline float power_of_two_roughly(float r) {
  float q = 1.327647227e-3f;
  q = M::multiply_add(q, r, 9.675541335e-3f);
  q = M::multiply_add(q, r, 5.550713272e-2f);
  q = M::multiply_add(q, r, 2.402211972e-1f);
  q = M::multiply_add(q, r, 6.931469671e-1f);
  return M::multiply_add(q, r, 1.000000072e+0f);
}

/// With fused multiply-adds and x log2(e) = n + r: returns r with |r| <= 1/2, and n in the low bits
/// of `shifted`. The product is exact before n is subtracted.
inline float reduced_log2(float x, uint32_t& shifted) {
  constexpr float magic = 12582912.0f, log2e = 1.44269502f, rest = 1.92596299e-8f;
  const float y = Fused::multiply_add(x, log2e, magic), n = y - magic;
  shifted = bits_of(y);
  return Fused::multiply_add(x, rest, Fused::multiply_add(x, log2e, -n));
}

template <class M = Separate>
inline float exp(float given) {
  const float x = between(given, -104.0f, 89.0f);  // beyond, the result is 0 or infinity
  uint32_t n;
  float y;
  if constexpr (std::is_same_v<M, Fused>) {
    const float r = reduced_log2(x, n);
    y = power_of_two_near<M>(r);
  } else {
    y = reduced_expm1<M>(x, n) + 1.0f;
  }
  // 2^n in two steps, because n reaches 128 and, for subnormal results, -150.
  const uint32_t half = n >> 1;
  return unless_nan(given, y * power_of_two(half) * power_of_two(n - half));
}
template <class M = Separate>
inline double exp(double x) {
  return std::exp(x);
}

/// exp(x) for |x| <= 89. It is 0 below -87.7, and infinite above 88.4.
template <class M = Separate>
inline float exp_near(float x) {
  if constexpr (std::is_same_v<M, Fused>) {
    uint32_t n;
    const float r = reduced_log2(x, n);
    return power_of_two_near<M>(r) * power_of_two(n);
  } else {
    uint32_t n;
    const float y = reduced_expm1<M>(x, n) + 1.0f;
    return y * power_of_two(n);
  }
}

/// log(x) + `add` log(2), for a positive normal number x with the bits u.
template <class M = Separate>
inline float log_of_normal(uint32_t u, float add) {
  // x = 2^e m, m in [sqrt(1/2), sqrt(2)); 0x3f3504f3 is sqrt(1/2)
  const int32_t exponent = static_cast<int32_t>(u - 0x3f3504f3u) >> 23;
  const float e = static_cast<float>(exponent) + add;
  const float r = float_of(u - (static_cast<uint32_t>(exponent) << 23)) - 1.0f;
  const float r2 = r * r;
  float p = 7.0376836292e-2f;
  p = M::multiply_add(p, r, -1.1514610310e-1f);
  p = M::multiply_add(p, r, 1.1676998740e-1f);
  p = M::multiply_add(p, r, -1.2420140846e-1f);
  p = M::multiply_add(p, r, 1.4249322787e-1f);
  p = M::multiply_add(p, r, -1.6668057665e-1f);
  p = M::multiply_add(p, r, 2.0000714765e-1f);
  p = M::multiply_add(p, r, -2.4999993993e-1f);
  p = M::multiply_add(p, r, 3.3333331174e-1f);
  float y = p * r * r2;
  y = M::multiply_add(e, -2.12194440e-4f, y);
  y = M::multiply_add(-0.5f, r2, y);
  return M::multiply_add(e, 0.693359375f, r + y);
}
inline bool is_positive_and_normal(float x) { return bits_of(x) - 0x00800000u < 0x7f000000u; }

template <class M = Separate>
inline float log(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const float scaled = subnormal ? x * 8388608.0f : x;  // 2^23
  float result = log_of_normal<M>(bits_of(scaled), subnormal ? -23.0f : 0.0f);
  result = x == HUGE_VALF ? x : result;
  result = x == 0.0f ? -HUGE_VALF : result;
  return x >= 0.0f ? result : float_of(0x7fc00000u);  // negative or NaN
}
template <class M = Separate>
inline double log(double x) {
  return std::log(x);
}

/// log(1 + x) for x >= 0. With u = 1 + x as rounded, it is log(u) x / (u - 1): the factor makes up
/// for the rounding. W. Kahan, "Mathematics Written in Sand" (1983).
template <class M = Separate>
inline float log1p_positive(float x) {
  const float u = 1.0f + x, d = u - 1.0f;
  return d == 0.0f ? x : log<M>(u) * (x / d);
}
template <class M = Separate>
inline double log1p_positive(double x) {
  return std::log1p(x);
}

template <class M = Separate>
inline float tanh(float x) {
  const float z = std::fabs(x);
  // Near 0, an odd polynomial.
  const float s = x * x;
  float p = -5.70498872745e-3f;
  p = M::multiply_add(p, s, 2.06390887954e-2f);
  p = M::multiply_add(p, s, -5.37397155531e-2f);
  p = M::multiply_add(p, s, 1.33314422036e-1f);
  p = M::multiply_add(p, s, -3.33332819422e-1f);
  const float small = M::multiply_add(p * s, x, x);
  // Elsewhere 1 - 2 / (exp(2z) + 1), where exp(2z) = 2^(n + r). From z = 10 on, the result is 1.
  constexpr float magic = 12582912.0f, scale = 2.88539008177792681f;
  const float a = between(z, -1.0f, 10.0f);
  const float shifted = M::multiply_add(a, scale, magic), n = shifted - magic;
  const float r = M::multiply_add(a, scale, -n);
  const float q = power_of_two_near<M>(r);
  const float denominator = M::multiply_add(q, power_of_two(bits_of(shifted)), 1.0f);
  const float large = 1.0f - 2.0f / denominator;
  return std::copysign(z >= 0.625f ? large : small, x);  // NaN is small
}
template <class M = Separate>
inline double tanh(double x) {
  return std::tanh(x);
}

/// Below this magnitude sin and cos are formulas. From it on, and for NaN, they call the C library.
inline constexpr float trigonometric_limit = 524288.0f;
inline bool is_beyond_trigonometric_limit(float x) { return !(std::fabs(x) < trigonometric_limit); }

/// With x = n pi / 2 + r and |r| <= pi / 4: returns r, and n in the low bits of `bits`. Computed in
/// double, n times the leading 33 bits of pi / 2 is exact. With fused multiply-adds it is computed
/// in float, where x - n c is exact for the leading 24 bits c of pi / 2.
template <class M = Separate>
inline float quarter_turns(float x, uint32_t& bits) {
  if constexpr (std::is_same_v<M, Fused>) {
    constexpr float magic = 12582912.0f;
    const float shifted = M::multiply_add(x, 0.636619772367581343f, magic), n = shifted - magic;
    bits = bits_of(shifted);
    return M::multiply_add(n, 1.71512451e-15f,
                           M::multiply_add(n, 4.37113883e-8f, M::multiply_add(n, -1.57079637f, x)));
  } else {
    constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52: rounds, as in exp
    const double xd = x, shifted = xd * 0.63661977236758134308 + magic, n = shifted - magic;
    uint64_t low;
    std::memcpy(&low, &shifted, 8);
    bits = static_cast<uint32_t>(low);
    return static_cast<float>((xd - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11);
  }
}

/// sin(x + quarters pi / 2). By n mod 4, it is +-sin r or +-cos r.
template <class M = Separate>
inline float sine(float x, int64_t quarters) {
  uint32_t bits;
  const float r = quarter_turns<M>(x, bits);
  const uint32_t quarter = bits + static_cast<uint32_t>(quarters);
  const float s = r * r;
  float p = -1.9515295891e-4f;
  p = M::multiply_add(p, s, 8.3321608736e-3f);
  p = M::multiply_add(p, s, -1.6666654611e-1f);
  const float sin_r = M::multiply_add(p * s, r, r);
  float q = 2.443315711809948e-5f;
  q = M::multiply_add(q, s, -1.388731625493765e-3f);
  q = M::multiply_add(q, s, 4.166664568298827e-2f);
  const float cos_r = M::multiply_add(q * s, s, -0.5f * s) + 1.0f;
  const uint32_t odd = 0u - (quarter & 1u);
  const float y =
      float_of(((bits_of(cos_r) & odd) | (bits_of(sin_r) & ~odd)) ^ ((quarter & 2u) << 30));
  return quarters == 0 && x == 0.0f ? x : y;  // keeps -0
}

/// 1 / sigmoid(x) = 1 + exp(-x), for numbers only; infinite below -88.4. With exp(-x) = 2^n (1 + p)
/// it is (1 + 2^n p) + 2^n, so that 1 + p is not rounded.
template <class M = Separate>
inline float inverse_sigmoid(float x) {
  const float z = between(-x, -88.0f, 89.0f);
  uint32_t n;
  float p;
  if constexpr (std::is_same_v<M, Fused>) {
    const float r = reduced_log2(z, n);
    p = M::multiply_add(log_of_two, r, power_of_two_curve<M>(r) * (r * r));
  } else {
    p = reduced_expm1<M>(z, n);
  }
  // 2^128 is infinite: the first term stays finite, so that the sum is no NaN
  const uint32_t power = bits_of(power_of_two(n)), most = bits_of(0x1p127f);
  return M::multiply_add(p, float_of(power < most ? power : most), 1.0f) + float_of(power);
}
/// 1 / (1 + exp(-x)); 0 below -88.4.
template <class M = Separate>
inline float sigmoid(float x) {
  return unless_nan(x, 1.0f / inverse_sigmoid<M>(x));
}
template <class M = Separate>
inline double inverse_sigmoid(double x) {
  return 1 + exp<M>(-x);
}
template <class M = Separate>
inline double sigmoid(double x) {
  return 1 / inverse_sigmoid<M>(x);
}

/// 2 u, where gelu's approximation is 0.5 x (1 + tanh(u)) = x sigmoid(2 u):
/// sqrt(8 / pi) (x + 0.044715 x^3).
template <class M = Separate, class T>
inline T twice_gelu_argument(T x) {
  return x * M::multiply_add(x * x, T(0.071354816272600263), T(1.5957691216057308));
}

/// exp(x) for x <= 0; 0 below -87.7.
template <class M = Separate>
inline float exp_of_negative(float x) {
  return exp_near<M>(-88.0f > x ? -88.0f : x);  // NaN passes
}
template <class M = Separate>
inline double exp_of_negative(double x) {
  return std::exp(x);
}

/// exp(x) - 1 for x <= 88, as 2^n (exp(r) - 1) + (2^n - 1).
template <class M = Separate>
inline float expm1_near(float x) {
  const float high = x > 88.0f ? 88.0f : x;
  uint32_t n;
  const float y = reduced_expm1<M>(high < -87.0f ? -87.0f : high, n), power = power_of_two(n);
  return M::multiply_add(y, power, power - 1.0f);
}
template <class M = Separate>
inline double expm1_near(double x) {
  return std::expm1(x);
}

/// log(1 + u) for u in [0, 1]. The error of rounding 1 + u is corrected to first order.
template <class M = Separate>
inline float log1p_near(float u) {
  const float w = 1.0f + u;
  return log<M>(w) + (u - (w - 1.0f)) / w;
}
template <class M = Separate>
inline double log1p_near(double u) {
  return std::log1p(u);
}

/// exp(-x^2 / 2) = 2^(n + r), within a relative error of 2e-5, near 0 of 2e-7. Results below the
/// normal numbers become 0.
template <class M = Separate>
inline float bell(float x) {
  constexpr float magic = 12582912.0f;
  const float y = x * x * -0.72134752044448170f, a = -127.0f > y ? -127.0f : y;  // NaN passes
  const float shifted = a + magic;
  return power_of_two_roughly<M>(a - (shifted - magic)) * power_of_two(bits_of(shifted));
}
template <class M = Separate>
inline double bell(double x) {
  return std::exp(-0.5 * x * x);
}

/// The normal distribution function, given bell(x). In the lower tail it is bell(x) times a
/// polynomial in 1 / (1 + c |x|) without constant term; in the upper tail, 1 minus that. (The form
/// is from C. Hastings, "Approximations for digital computers", 1955; the fit is our own.) Absolute
/// error 2e-7, relative error in the lower tail 2e-5.
template <class M = Separate>
inline float normal_cdf(float x, float bell_of_x) {
  const float t = 1.0f / M::multiply_add(0.3375f, std::fabs(x), 1.0f);
  float p = 4.289059713e-2f;
  p = M::multiply_add(p, t, -1.963812411e-1f);
  p = M::multiply_add(p, t, 2.643487006e-1f);
  p = M::multiply_add(p, t, -3.001795337e-2f);
  p = M::multiply_add(p, t, 1.550991237e-1f);
  p = M::multiply_add(p, t, 1.290730089e-1f);
  p = M::multiply_add(p, t, 1.349877268e-1f);
  const float tail = p * t * bell_of_x;
  return x < 0.0f ? tail : 1.0f - tail;
}
template <class M = Separate>
inline double normal_cdf(double x, double) {
  return 0.5 * (1 + std::erf(x * 0.70710678118654752440));
}

template <class M = Separate>
inline float erf(float x) {
  const float z = std::fabs(x), s = x * x;
  // Near 0, x times a polynomial in x^2. Both polynomials are our own fits.
  float p = -6.315128956e-4f;
  p = M::multiply_add(p, s, 5.051094755e-3f);
  p = M::multiply_add(p, s, -2.680254773e-2f);
  p = M::multiply_add(p, s, 1.128271740e-1f);
  p = M::multiply_add(p, s, -3.761257184e-1f);
  p = M::multiply_add(p, s, 1.283791597e-1f);
  const float small = M::multiply_add(p, x, x);
  // Elsewhere 1 - 2^(z q(z)), where z q(z) = log2(erfc(z)). From z = 4 on, the result is 1.
  const float a = between(z, -1.0f, 4.0f);
  float q = 3.106355900e-4f;
  q = M::multiply_add(q, a, -4.654087815e-3f);
  q = M::multiply_add(q, a, 3.307436917e-2f);
  q = M::multiply_add(q, a, -1.519407763e-1f);
  q = M::multiply_add(q, a, -9.170867099e-1f);
  q = M::multiply_add(q, a, -1.628120146e+0f);
  constexpr float magic = 12582912.0f;
  const float shifted = M::multiply_add(q, a, magic), n = shifted - magic;
  const float e = power_of_two_roughly<M>(M::multiply_add(q, a, -n));
  const float large = M::multiply_add(-e, power_of_two(bits_of(shifted)), 1.0f);
  return std::copysign(z >= 0.85f ? large : small, x);  // NaN is small
}
template <class M = Separate>
inline double erf(double x) {
  return std::erf(x);
}

/// For a finite x > 0, x = 2^e m with m in [sqrt(1/2), sqrt(2)). Returns m - 1, and e.
inline double mantissa_less_one(double x, double& e) {
  constexpr uint64_t one = 0x3ff0000000000000u, sqrt_half = 0x3fe6a09e667f3bcdu;
  const uint64_t u = bits_of(x), shifted = u - sqrt_half + one, exponent = shifted >> 52;
  // as a double this is 2^52 + biased exponent: the low bits hold the exponent
  e = double_of(0x4330000000000000u | exponent) - 4503599627371519.0;
  return double_of(u - (exponent << 52) + one) - 1.0;
}
/// e + log2(1 + d) for d in [sqrt(1/2) - 1, sqrt(2) - 1), within a relative error of 2^-37. log2(1
/// + d) = s p(s^2) with s = d / (2 + d). Our own fit.
template <class M>
inline double log2_of_parts(double d, double e) {
  const double s = d / (d + 2.0), t = s * s;
  double p = 0.3407280211248596;
  p = M::multiply_add(p, t, 0.4116728262140797);
  p = M::multiply_add(p, t, 0.5770835832802335);
  p = M::multiply_add(p, t, 0.9617966733500108);
  p = M::multiply_add(p, t, 2.885390081790081);
  return M::multiply_add(s, p, e);
}
/// log2(x) of a finite x > 0 in double, within a relative error of 2^-37.
template <class M>
inline double log2_in_double(double x) {
  double e;
  const double d = mantissa_less_one(x, e);
  return log2_of_parts<M>(d, e);
}
/// 2^x in double for |x| < 1000, within a relative error of 2^-29. Our own fit.
template <class M>
inline double exp2_in_double(double x) {
  constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = x + magic, r = x - (shifted - magic);
  double p = 0.00015345811570257651;
  p = M::multiply_add(p, r, 0.0013399931215009638);
  p = M::multiply_add(p, r, 0.009618488958746648);
  p = M::multiply_add(p, r, 0.05550328776979553);
  p = M::multiply_add(p, r, 0.2402264689061812);
  p = M::multiply_add(p, r, 0.6931472057372542);
  p = M::multiply_add(p, r, 1.0000000005541692);
  return p * double_of((bits_of(shifted) << 52) + 0x3ff0000000000000u);
}

/// Limits the magnitude of x to `bound`, also that of NaN. Works on bits, because a choice between
/// numbers would stay a branch in `pow`.
inline float limit(float x, float bound) {
  const uint32_t sign = bits_of(x) & 0x80000000u, u = bits_of(x) - sign, most = bits_of(bound);
  return float_of((u < most ? u : most) | sign);
}
inline double limit(double x, double bound) {
  const uint64_t sign = bits_of(x) & 0x8000000000000000u, u = bits_of(x) - sign;
  const int64_t magnitude = static_cast<int64_t>(u), most = static_cast<int64_t>(bits_of(bound));
  return double_of(static_cast<uint64_t>(magnitude < most ? magnitude : most) | sign);
}

/// x^y as in IEEE 754: 2^(y log2 |x|) in double, so that float's own subnormals and infinities need
/// no care. The logarithms of zero and infinity are so large that every exponent except 0 leads
/// beyond float's range. Exponents beyond 1e10 do so for every x except 1.
template <class M = Separate>
inline float pow(float x, float y) {
  constexpr double huge = 1e290;
  const double z = std::fabs(x), above = z > 1e100 ? huge : 0.0, below = z == 0.0 ? -huge : 0.0;
  const double exponent = limit(y, 1e10f);
  const double power = exponent * (log2_in_double<M>(z) + (above + below));
  float result = static_cast<float>(exp2_in_double<M>(limit(power, 512.0)));
  // a negative number has a power if the exponent is whole; from 2^24 on all exponents are whole
  // and even
  const float near = limit(y, 16777216.0f);
  const int32_t whole = static_cast<int32_t>(near);
  const float rest = static_cast<float>(whole) - near;
  const uint32_t odd = rest == 0.0f ? static_cast<uint32_t>(whole) << 31 : 0u;
  result = float_of(bits_of(result) | (bits_of(x) & odd));
  const float nan = float_of(0x7fc00000u);
  const float negative = x > -HUGE_VALF ? x : 1.0f, root = rest == 0.0f ? result : nan;
  result = negative < 0.0f ? root : result;
  result = x == x ? result : nan;
  result = y == y ? result : nan;
  result = x == 1.0f ? 1.0f : result;
  return y == 0.0f ? 1.0f : result;
}
template <class M = Separate>
inline double pow(double x, double y) {
  return std::pow(x, y);
}

}  // namespace taper::portable::math
