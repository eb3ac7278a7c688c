// The less common elementary functions of float. Like those of math.h they have no branches and
// call no library. Most are computed in double and rounded once: the spare digits of double make up
// for cancellation. Polynomials without another source are our own minimax fits. For double the C
// library is used.
//
// Errors against the functions in double, measured by tests/kernels/math_test over a sample of all
// floats: 0.6 units in the last place, except for exp2 (1.2) and expm1 (1.6).
#pragma once
#include "taper/kernels/portable/math.h"

namespace taper::portable::math {

// Defines a function that calls the C library for double.
#define TAPER_LIBRARY_IN_DOUBLE(name) \
  template <class M = Separate>       \
  inline double name(double x) {      \
    return std::name(x);              \
  }
TAPER_LIBRARY_IN_DOUBLE(exp2)
TAPER_LIBRARY_IN_DOUBLE(expm1)
TAPER_LIBRARY_IN_DOUBLE(log2)
TAPER_LIBRARY_IN_DOUBLE(log10)
TAPER_LIBRARY_IN_DOUBLE(log1p)
TAPER_LIBRARY_IN_DOUBLE(sinh)
TAPER_LIBRARY_IN_DOUBLE(cosh)
TAPER_LIBRARY_IN_DOUBLE(asinh)
TAPER_LIBRARY_IN_DOUBLE(acosh)
TAPER_LIBRARY_IN_DOUBLE(atanh)
TAPER_LIBRARY_IN_DOUBLE(atan)
TAPER_LIBRARY_IN_DOUBLE(asin)
TAPER_LIBRARY_IN_DOUBLE(acos)
TAPER_LIBRARY_IN_DOUBLE(erfc)
#undef TAPER_LIBRARY_IN_DOUBLE

inline constexpr double half_pi = 1.57079632679489661923;
inline float not_a_number() { return float_of(0x7fc00000u); }

// ---- powers ----

template <class M = Separate>
inline float exp2(float x) {
  // beyond these bounds the result is infinity or 0; NaN passes
  float a = 129.0f < x ? 129.0f : x;
  a = -151.0f > a ? -151.0f : a;
  constexpr float magic = 12582912.0f;
  const float shifted = a + magic;
  const float y = power_of_two_near<M>(a - (shifted - magic));
  // 2^n in two steps, as in exp
  const uint32_t k = bits_of(shifted) - 0x4b400000u;
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(k) >> 1);
  return y * power_of_two(half) * power_of_two(k - half);
}

/// 2^n (exp(r) - 1) + (2^n - 1). Computed with 2^(n - 1) and doubled, because n reaches 128.
template <class M = Separate>
inline float expm1(float x) {
  float a = 89.0f < x ? 89.0f : x;
  a = -25.0f > a ? -25.0f : a;  // the result is -1 below -17.4
  uint32_t n;
  const float y = reduced_expm1<M>(a, n), half_power = power_of_two(n - 1);
  const float result = 2.0f * M::multiply_add(y, half_power, half_power - 0.5f);
  return x == 0.0f ? x : result;  // keeps -0
}

/// e^x in double, within a relative error of 2^-29, if the result is in float's range. Otherwise it
/// is far beyond that range.
template <class M>
inline double exp_in_double(double x) {
  return exp2_in_double<M>(limit(x * 1.44269504088896340736, 512.0));
}

/// (e^x - e^-x) / 2; near 0 an odd polynomial.
template <class M = Separate>
inline float sinh(float x) {
  const double z = x, s = z * z, e = exp_in_double<M>(z);
  double p = 2.818524486822434e-06;
  p = M::multiply_add(p, s, 0.0001983581257877446);
  p = M::multiply_add(p, s, 0.008333352590001165);
  p = M::multiply_add(p, s, 0.1666666643036678);
  p = M::multiply_add(p, s, 1.0000000000459075);
  const double near = z * p, far = 0.5 * (e - 1.0 / e);
  const float y = static_cast<float>(s < 1.0 ? near : far);
  return x == x ? y : x;
}
template <class M = Separate>
inline float cosh(float x) {
  const double e = exp_in_double<M>(x);
  const float y = static_cast<float>(0.5 * (e + 1.0 / e));
  return x == x ? y : x;
}

// ---- logarithms ----

/// log(1 + x) in double for finite x > -1, within a relative error of 2^-36. If 1 + x has exponent
/// 0, its mantissa's distance to 1 is x itself, which is not rounded.
template <class M>
inline double log1p_in_double(double x) {
  double e;
  const double rounded = mantissa_less_one(1.0 + x, e);
  return 0.69314718055994530942 * log2_of_parts<M>(e == 0.0 ? x : rounded, e);
}
/// A logarithm of x for every x, given the result y of a formula for finite x > 0.
inline float logarithm_at_ends(float x, float y) {
  y = x == HUGE_VALF ? x : y;
  y = x == 0.0f ? -HUGE_VALF : y;
  return x >= 0.0f ? y : not_a_number();
}

template <class M = Separate>
inline float log2(float x) {
  return logarithm_at_ends(x, static_cast<float>(log2_in_double<M>(x)));
}
template <class M = Separate>
inline float log10(float x) {
  constexpr double log10_of_2 = 0.30102999566398119521;
  return logarithm_at_ends(x, static_cast<float>(log10_of_2 * log2_in_double<M>(x)));
}
template <class M = Separate>
inline float log1p(float x) {
  // 1 + x is exact for x = -1, the only x for which it is 0
  const float y = logarithm_at_ends(1.0f + x, static_cast<float>(log1p_in_double<M>(x)));
  return x == 0.0f ? x : y;  // keeps -0
}

/// log(x + sqrt(x^2 + 1)), in a form that does not cancel near 0.
template <class M = Separate>
inline float asinh(float x) {
  const float size = std::fabs(x);
  const double z = size, s = z * z;
  const float y = static_cast<float>(log1p_in_double<M>(z + s / (1.0 + std::sqrt(1.0 + s))));
  return std::copysign(size < HUGE_VALF ? y : size, x);
}
/// log(x + sqrt(x^2 - 1)), computed from t = x - 1, which is exact.
template <class M = Separate>
inline float acosh(float x) {
  const double t = static_cast<double>(x) - 1.0;
  const float y = static_cast<float>(log1p_in_double<M>(t + std::sqrt(t * (t + 2.0))));
  const float result = x < HUGE_VALF ? y : x;
  return x >= 1.0f ? result : not_a_number();
}
/// log((1 + x) / (1 - x)) / 2
template <class M = Separate>
inline float atanh(float x) {
  const float size = std::fabs(x);
  const double z = size;
  const float y = static_cast<float>(0.5 * log1p_in_double<M>(2.0 * z / (1.0 - z)));
  const float end = size == 1.0f ? HUGE_VALF : not_a_number();
  return std::copysign(size < 1.0f ? y : end, x);
}

// ---- angles ----

/// For |x| < trigonometric_limit: x = n pi / 2 + r as in quarter_turns. The tangent is sin r / cos
/// r for even n, and -cos r / sin r for odd n.
template <class M = Separate>
inline float tangent(float x) {
  constexpr double magic = 6755399441055744.0;
  const double xd = x, shifted = xd * 0.63661977236758134308 + magic, n = shifted - magic;
  const double r = (xd - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11, s = r * r;
  double p = -0.00019501755192605376;
  p = M::multiply_add(p, s, 0.008332015973874465);
  p = M::multiply_add(p, s, -0.1666665021699681);
  p = M::multiply_add(p, s, 0.9999999967611815);
  double q = 2.4372637197368698e-05;
  q = M::multiply_add(q, s, -0.0013886529212086241);
  q = M::multiply_add(q, s, 0.04166661326590225);
  q = M::multiply_add(q, s, -0.4999999957248992);
  q = M::multiply_add(q, s, 0.9999999999442853);
  const uint64_t odd = 0u - (bits_of(shifted) & 1u), sign = odd << 63;
  const uint64_t sine = bits_of(p * r), cosine = bits_of(q);
  const double above = double_of(((cosine & odd) | (sine & ~odd)) ^ sign);
  return static_cast<float>(above / double_of((sine & odd) | (cosine & ~odd)));
}

/// atan(t) for t in [0, 1], within a relative error of 2^-28.
template <class M>
inline double atan_in_double(double t) {
  const double s = t * t;
  double p = -0.001753658038756053;
  p = M::multiply_add(p, s, 0.010726349418726947);
  p = M::multiply_add(p, s, -0.03080485623626724);
  p = M::multiply_add(p, s, 0.05755400090356556);
  p = M::multiply_add(p, s, -0.08377542702172838);
  p = M::multiply_add(p, s, 0.10942157947610438);
  p = M::multiply_add(p, s, -0.14261969622682266);
  p = M::multiply_add(p, s, 0.19998271065853163);
  p = M::multiply_add(p, s, -0.33333283903225436);
  p = M::multiply_add(p, s, 0.9999999976530886);
  return t * p;
}
template <class M = Separate>
inline float atan(float x) {
  const double z = std::fabs(x), inverse = 1.0 / z;
  const double angle = atan_in_double<M>(z > 1.0 ? inverse : z);
  return std::copysign(static_cast<float>(z > 1.0 ? half_pi - angle : angle), x);
}
/// The angle of the point (x, y) from the x axis.
template <class M = Separate>
inline float atan2(float y, float x) {
  // infinities become numbers far beyond float's range; their ratios give the limits. NaN passes
  constexpr double infinite = 1e300;
  double height = std::fabs(y), width = std::fabs(x);
  height = infinite < height ? infinite : height;
  width = infinite < width ? infinite : width;
  const bool steep = height > width;
  const double less = steep ? width : height, more = steep ? height : width;
  double angle = atan_in_double<M>(less / (more == 0.0 ? 1.0 : more));
  angle = steep ? half_pi - angle : angle;
  const double other = 2.0 * half_pi - angle;
  angle = std::copysign(1.0, static_cast<double>(x)) < 0.0 ? other : angle;  // also for -0
  return std::copysign(static_cast<float>(angle), y);
}
template <class M = Separate>
inline double atan2(double y, double x) {
  return std::atan2(y, x);
}

/// asin(x), within a relative error of 2^-27. Above 1/2 it is pi / 2 - 2 asin(sqrt((1 - x) / 2)).
template <class M>
inline double asin_in_double(double x) {
  const double z = std::fabs(x), rest = 0.5 * (1.0 - z), root = std::sqrt(rest);
  const double s = z > 0.5 ? rest : z * z, t = z > 0.5 ? root : z;
  double p = 0.042635382027151114;
  p = M::multiply_add(p, s, 0.02385864588653338);
  p = M::multiply_add(p, s, 0.045549994285990374);
  p = M::multiply_add(p, s, 0.07494437475006481);
  p = M::multiply_add(p, s, 0.16666789982113306);
  p = M::multiply_add(p, s, 0.9999999955938038);
  const double angle = t * p;
  return std::copysign(z > 0.5 ? half_pi - 2.0 * angle : angle, x);
}
template <class M = Separate>
inline float asin(float x) {
  return static_cast<float>(asin_in_double<M>(x));
}
template <class M = Separate>
inline float acos(float x) {
  return static_cast<float>(half_pi - asin_in_double<M>(x));
}

/// sqrt(a^2 + b^2), which cannot overflow in double. Infinity if a or b is infinite.
template <class M = Separate>
inline float hypot(float a, float b) {
  const double x = a, y = b, square = M::multiply_add(x, x, y * y);
  const float result = static_cast<float>(std::sqrt(square));
  return std::fabs(a) == HUGE_VALF || std::fabs(b) == HUGE_VALF ? HUGE_VALF : result;
}
template <class M = Separate>
inline double hypot(double a, double b) {
  return std::hypot(a, b);
}

// ---- the complementary error function ----

/// For x >= 0, exp(-x^2) t p(t) with t = 1 / (1 + 0.3 x). For x < 0, 2 minus erfc(-x).
template <class M = Separate>
inline float erfc(float x) {
  const double size = std::fabs(x), z = size < 10.3 ? size : 10.3;  // the result is 0 beyond
  const double t = 1.0 / M::multiply_add(z, 0.3, 1.0);
  double p = 0.0546114699592338;
  p = M::multiply_add(p, t, -0.32600371371271797);
  p = M::multiply_add(p, t, 0.7257791004851532);
  p = M::multiply_add(p, t, -0.8111783165637766);
  p = M::multiply_add(p, t, 0.7439469195667429);
  p = M::multiply_add(p, t, -0.2635772183421304);
  p = M::multiply_add(p, t, 0.25858960724806984);
  p = M::multiply_add(p, t, 0.11266737166482935);
  p = M::multiply_add(p, t, 0.16715647955875526);
  p = M::multiply_add(p, t, 0.16872900353491002);
  p = M::multiply_add(p, t, 0.1692792960993729);
  const double tail = p * t * exp2_in_double<M>(z * z * -1.44269504088896340736);
  const float y = static_cast<float>(x < 0.0f ? 2.0 - tail : tail);
  return x == x ? y : x;
}

}  // namespace taper::portable::math
