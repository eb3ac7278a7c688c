// The inverse of the error function, the logarithm of the gamma function with its derivatives,
// modified Bessel functions, and the logarithm of the normal distribution. All but the first are
// computed in double: they are rare, and half of their formulas cancel. Where float needs fewer
// terms, there is a second form.
#pragma once
#include <cmath>
#include <cstdint>

#include "taper/kernels/portable/elementary.h"

namespace taper::portable::math {

inline constexpr double pi = 3.14159265358979323846;

/// The y with erf(y) = x. The start is from M. Giles, "Approximating the erfinv function", GPU
/// Computing Gems Jade edition (2012); it is exact to single precision. double takes two of
/// Halley's steps from there. Near 1, erfc computes the distance to 1.
template <class M, class T>
inline T erfinv_start(T x) {
  const T w = -log<M>((T(1) - x) * (T(1) + x));
  const T near = w - T(2.5), far = std::sqrt(w < T(5) ? T(5) : w) - T(3);
  T p = T(2.81022636e-08);
  p = M::multiply_add(p, near, T(3.43273939e-07));
  p = M::multiply_add(p, near, T(-3.5233877e-06));
  p = M::multiply_add(p, near, T(-4.39150654e-06));
  p = M::multiply_add(p, near, T(0.00021858087));
  p = M::multiply_add(p, near, T(-0.00125372503));
  p = M::multiply_add(p, near, T(-0.00417768164));
  p = M::multiply_add(p, near, T(0.246640727));
  p = M::multiply_add(p, near, T(1.50140941));
  T q = T(-0.000200214257);
  q = M::multiply_add(q, far, T(0.000100950558));
  q = M::multiply_add(q, far, T(0.00134934322));
  q = M::multiply_add(q, far, T(-0.00367342844));
  q = M::multiply_add(q, far, T(0.00573950773));
  q = M::multiply_add(q, far, T(-0.0076224613));
  q = M::multiply_add(q, far, T(0.00943887047));
  q = M::multiply_add(q, far, T(1.00167406));
  q = M::multiply_add(q, far, T(2.83297682));
  const T y = (w < T(5) ? p : q) * x;
  return std::fabs(x) == T(1) ? std::copysign(T(HUGE_VALF), x) : y;
}
template <class M = Separate>
inline float erfinv(float x) {
  return erfinv_start<M>(x);
}
template <class M = Separate>
inline double erfinv(double x) {
  double y = erfinv_start<Separate>(x);
  if (!std::isfinite(y)) return y;
  // nearer to 1 than a float can be: from erfc(y) = exp(-y²) / (y √π)
  if (const double rest = 1 - std::fabs(x); rest < 1e-7) {
    const double l = -std::log(rest * std::sqrt(pi));
    y = std::copysign(std::sqrt(l - 0.5 * std::log(l)), x);
  }
  for (int step = 0; step < 2; ++step) {
    const double size = std::fabs(x), height = std::fabs(y);
    const double error =
        size < 0.5 ? std::erf(height) - size : (1 - size) - std::erfc(height);  // for x > 0
    const double u = error / (2 / std::sqrt(pi) * std::exp(-y * y));
    y = std::copysign(height - u / (1 + height * u), x);
  }
  return y;
}

/// log Γ(2 + z) for |z| <= 1/2: Abramowitz and Stegun 6.1.33. 26 terms give all digits of a double,
/// 13 those of a float.
template <int terms>
inline double log_gamma_near_two(double z) {
  // (-1)^k (ζ(k) - 1) / k, k = 2 …
  constexpr double series[] = {
      0.3224670334241132182,     -0.06735230105319809513,   0.02058080842778454788,
      -0.007385551028673985266,  0.002890510330741523286,   -0.001192753911703260977,
      0.0005096695247430424223,  -0.0002231547584535793798, 0.00009945751278180853371,
      -0.0000449262367381331417, 0.00002050721277567069155, -9.439488275268395904e-6,
      4.374866789907487804e-6,   -2.039215753801366237e-6,  9.551412130407419833e-7,
      -4.492469198764566043e-7,  2.120718480555466587e-7,   -1.004322482396809961e-7,
      4.769810169363980566e-8,   -2.271109460894316491e-8,  1.083865921489695409e-8,
      -5.183475041970046655e-9,  2.483674543802478317e-9,   -1.192140140586091207e-9,
      5.731367241678862013e-10,  -2.759522885124233145e-10};
  // even and odd powers are summed apart: two chains of half the length
  const double z2 = z * z;
  double even = 0, odd = 0;
  for (int k = (terms - 1) / 2 * 2; k >= 0; k -= 2) {
    even = even * z2 + series[k];
    odd = odd * z2 + (k + 1 < terms ? series[k + 1] : 0);
  }
  return z * (0.42278433509846713940 + z * (even + z * odd));  // 1 - γ
}
inline constexpr double half_log_two_pi = 0.91893853320467274178;

/// Stirling's series after its first terms, for x >= 10: Abramowitz and Stegun 6.1.41. It is log
/// Γ(x) - (x - 1/2) log(x) + x - log(2π) / 2.
inline double stirling_tail(double x) {
  const double r = 1 / x, r2 = r * r;
  double tail = -1.0 / 360360 * 691;  // B_2k / (2k (2k - 1)) for k = 6 … 1
  tail = tail * r2 + 1.0 / 1188;
  tail = tail * r2 - 1.0 / 1680;
  tail = tail * r2 + 1.0 / 1260;
  tail = tail * r2 - 1.0 / 360;
  tail = tail * r2 + 1.0 / 12;
  return tail * r;
}
/// log Γ(x) for x > 0. From 10 on, Stirling's series. Below, Γ(x + 1) = x Γ(x) leads to log Γ near
/// 2, so that the result is exactly 0 at 1 and 2.
template <int terms>
inline double log_gamma_positive(double x) {
  if (x < 0.5) return log_gamma_near_two<terms>(x) - std::log(x * (1 + x));
  if (x < 1.5) return log_gamma_near_two<terms>(x - 1) - std::log1p(x - 1);
  if (x < 10) {
    double product = 1;
    while (x > 2.5) x -= 1, product *= x;
    return log_gamma_near_two<terms>(x - 2) + std::log(product);
  }
  if (x > 1e17) return x * (std::log(x) - 1);  // the rest is below the last digit
  return (x - 0.5) * std::log(x) - x + half_log_two_pi + stirling_tail(x);
}
/// x minus the nearest integer, which is exact. Functions with poles or zeros at all integers need
/// it.
inline double from_integer(double x) { return x - std::round(x); }

/// log |Γ(x)|. Up to -1/2 by Γ(x) Γ(1 - x) = π / sin(πx). Not inlined, because it is long.
template <int terms = 26>
__attribute__((noinline)) double lgamma(double x) {
  if (x != x) return x;
  if (std::isinf(x)) return HUGE_VAL;
  if (x > 0) return log_gamma_positive<terms>(x);
  const double off = from_integer(x);
  if (off == 0) return HUGE_VAL;
  if (x > -0.5) return log_gamma_near_two<terms>(x) - std::log(-x * (1 + x));
  return std::log(pi / std::fabs(std::sin(pi * off))) - log_gamma_positive<terms>(1 - x);
}

/// log Γ(x) for a float 0 < x < infinity, to all digits of a float: one formula without a branch.
/// Below 2.5 it starts from log Γ near 2, as above. Beyond, it uses Stirling's series for x + 6 and
/// Γ(x + 1) = x Γ(x).
template <class M>
inline double log_gamma_of_float(double x) {
  const bool small = x < 2.5, tiny = x < 0.5, low = x < 1.5;
  double z = low ? x - 1.0 : x - 2.0, shift = low ? x : 1.0;
  z = tiny ? x : z;
  shift = tiny ? x * (1.0 + x) : shift;
  z = small ? z : 0.0;
  const double w = x + 6.0, far = x * (x + 1.0) * (x + 2.0) * ((x + 3.0) * (x + 4.0) * (x + 5.0));
  const double r = 1.0 / w, r2 = r * r;
  double tail = M::multiply_add(r2, 1.0 / 1260, -1.0 / 360);
  tail = M::multiply_add(tail, r2, 1.0 / 12);
  const double log_of_shift = log2_in_double<M>(small ? shift : far);
  const double stirling =
      (w - 0.5) * (0.69314718055994530942 * log2_in_double<M>(w)) - w + 0.91893853320467274178;
  const double base = small ? log_gamma_near_two<13>(z) : stirling + tail * r;
  return base - 0.69314718055994530942 * log_of_shift;
}

/// Γ'(x) / Γ(x). From 10 on, the asymptotic series. Below 10, ψ(x + 1) = ψ(x) + 1 / x leads there.
/// Below 0, ψ(x) = ψ(1 - x) - π / tan(πx). Abramowitz and Stegun 6.3.5, 6.3.7, 6.3.18.
inline double digamma(double x) {
  if (x == 0) return std::copysign(HUGE_VAL, -x);
  double reflected = 0;
  if (x < 0) {
    const double off = from_integer(x);
    if (off == 0 || off != off) return std::nan("");  // a pole, or minus infinity
    reflected = -pi / std::tan(pi * off);
    x = 1 - x;
  }
  double sum = 0;
  for (; x < 10; x += 1) sum -= 1 / x;
  const double r2 = 1 / (x * x);
  double tail = 1.0 / 12;  // B_2k / (2k) for k = 7 … 1
  tail = tail * r2 - 691.0 / 32760;
  tail = tail * r2 + 1.0 / 132;
  tail = tail * r2 - 1.0 / 240;
  tail = tail * r2 + 1.0 / 252;
  tail = tail * r2 - 1.0 / 120;
  tail = tail * r2 + 1.0 / 12;
  return sum + std::log(x) - 0.5 / x - tail * r2 + reflected;
}

/// q^-s
inline double inverse_power(double q, double s) { return std::pow(q, -s); }
inline double inverse_power(double q, int64_t s) {
  if (s > 64) return std::pow(q, -static_cast<double>(s));
  double power = 1;
  for (; s > 0; s /= 2, q *= q)
    if (s % 2 != 0) power *= q;
  return 1 / power;
}
/// ζ(s, q) = Σ 1 / (q + k)^s over k >= 0, for s > 1 and q > 0. The first terms are added one by
/// one. From q = `first` on, the Euler-Maclaurin formula gives the rest. `first` = 10 is enough for
/// the last digits of a double, 3 for those of a float. S is int64_t or double.
template <class S>
inline double hurwitz_zeta_positive(S s, double q, int first) {
  const double e = static_cast<double>(s);
  double sum = 0;
  // from here on, each term of the formula is less than half of the one before
  const double start = first + (e < 200 ? e / 2 : 100);
  for (; q < start; q += 1) sum += inverse_power(q, s);
  const double power = inverse_power(q, s);
  if (power == 0) return sum;  // and the factors below may be infinite
  sum += power * q / (e - 1) + power / 2;
  // B_2k / (2k)!
  constexpr double ratios[] = {1.0 / 12,          -1.0 / 720,
                               1.0 / 30240,       -1.0 / 1209600,
                               1.0 / 47900160,    -691.0 / 1307674368000,
                               1.0 / 74724249600, -3617.0 / 10670622842880000};
  double term = power * e / q;
  const double inverse = 1 / (q * q);
  for (int k = 0; k < 8; ++k) {
    sum += ratios[k] * term;
    const double next = e + 2 * k + 1;
    term *= next * (next + 1) * inverse;
  }
  return sum;
}
/// The same for q < 0, not whole, and whole s. The terms below 0 are a difference of two such sums.
template <class S>
inline double hurwitz_zeta_negative(S s, bool even, double q, int first) {
  const double off = from_integer(q);
  // q = whole + part, 0 < part < 1
  const double part = off > 0 ? off : 1 + off, rest = off > 0 ? 1 - off : -off;
  const double below =
      hurwitz_zeta_positive(s, rest, first) - hurwitz_zeta_positive(s, 1 - q, first);
  return hurwitz_zeta_positive(s, part, first) + (even ? below : -below);
}
/// The same for any q and whole s.
inline double hurwitz_zeta(int64_t s, double q, int first) {
  if (q != q) return q;
  if (q > 0) return std::isinf(q) ? 0 : hurwitz_zeta_positive(s, q, first);
  const double off = from_integer(q);
  // at -infinity the results are those of PyTorch: NaN for s = 2, else infinity
  if (off == 0 || off != off) return s == 2 && off != off ? off : HUGE_VAL;
  return hurwitz_zeta_negative(s, s % 2 == 0, q, first);
}
/// The same for any s. Values outside the domain are those of PyTorch; at infinite arguments, where
/// PyTorch's formula gives NaN, they are limits.
inline double zeta(double s, double q, int first = 10) {
  if (s == 1) return HUGE_VAL;
  if (s < 1) return std::nan("");
  if (q <= 0 && (std::isinf(q) || q == std::floor(q))) return HUGE_VAL;  // a pole
  if (s != s || q != q || (q < 0 && s != std::floor(s))) return std::nan("");
  if (std::isinf(s)) return q < 1 ? HUGE_VAL : q == 1 ? 1 : 0;
  if (std::isinf(q)) return 0;
  if (q < 0) return hurwitz_zeta_negative(s, std::fmod(s, 2) == 0, q, first);
  return hurwitz_zeta_positive(s, q, first);
}
/// The n-th derivative of digamma: (-1)^(n + 1) n! ζ(n + 1, x). Abramowitz and Stegun 6.4.10.
inline double polygamma(int64_t n, double x, int first = 10) {
  if (n == 0) return digamma(x);
  if (n > 1000) n = 1000 + n % 2;  // both factors are far outside the range of double
  double factor = n % 2 == 0 ? -1 : 1;
  for (int64_t k = 2; k <= n; ++k) factor *= static_cast<double>(k);
  return factor * hurwitz_zeta(n + 1, x, first);
}

/// exp(-|x|) times the modified Bessel function of the first kind, of order 0 or 1. Up to |x| = 20
/// by its power series (Abramowitz and Stegun 9.6.10), whose terms are all positive. Beyond by
/// 9.7.1, whose smallest term is below 1e-17.
inline double scaled_bessel_i(int order, double x) {
  const double size = std::fabs(x);
  double sum = 1, term = 1;
  if (size <= 20) {
    const double square = size * size / 4;
    for (int k = 1; term > 1e-17 * sum; ++k) sum += term *= square / (k * double(k + order));
    sum *= (order == 1 ? size / 2 : 1) * std::exp(-size);
  } else {
    const double mu = 4.0 * order;
    for (int k = 1; k <= 40; ++k) {
      const double odd = 2 * k - 1;
      const double next = -term * (mu - odd * odd) / (8 * size * k);
      if (!(std::fabs(next) < std::fabs(term))) break;
      sum += term = next;
    }
    sum /= std::sqrt(2 * pi * size);
  }
  return order == 1 && x < 0 ? -sum : sum;
}
/// The same without the factor exp(-|x|). Infinite where it exceeds the range.
inline double bessel_i(int order, double x) {
  const double scaled = scaled_bessel_i(order, x), half = std::exp(std::fabs(x) / 2);
  return scaled * half * half;
}

/// For float, polynomials of our own fit, within 2^-29: in x^2 up to 8, and in 1 / |x| beyond.
template <class M, class... C>
inline double polynomial(double x, double first, C... next) {
  double p = first;
  ((p = M::multiply_add(p, x, next)), ...);
  return p;
}
template <int order, class M>
inline double bessel_i_near(double x) {  // |x| <= 8
  const double s = x * x;
  if constexpr (order == 0)
    return polynomial<M>(s, 1.3566377647884273e-19, 1.991339528964419e-17, 1.006956224669779e-14,
                         2.372138835067064e-12, 4.717998527112863e-10, 6.780235261227249e-08,
                         6.781830665194354e-06, 0.0004340269619520337, 0.015625002161758276,
                         0.249999997965718, 1.000000000280564);
  else
    return x * polynomial<M>(s, 5.967449875091611e-21, 1.0528047454107003e-18,
                             5.525359358819943e-16, 1.487115981133693e-13, 3.368225779459291e-11,
                             5.650618611899839e-09, 6.781770367030266e-07, 5.4253419024343805e-05,
                             0.0026041668266422275, 0.062499999823460585, 0.5000000000298517);
}
template <int order, class M>
inline double scaled_bessel_i_far(double x) {  // x >= 8
  const double u = 1.0 / x;
  if constexpr (order == 0)
    return std::sqrt(u) * polynomial<M>(u, 1.8275251392559275, -0.3055687489431608,
                                        0.08511596951023785, 0.02725174512154662,
                                        0.028094779729960967, 0.04986741970883414,
                                        0.3989422808917783);
  else
    return std::sqrt(u) * polynomial<M>(u, -2.0768448781127637, 0.3378736831346271,
                                        -0.10343254583747442, -0.03865807498045305,
                                        -0.046801831048497854, -0.14960293180886627,
                                        0.39894227982819946);
}
template <int order, class M = Separate>
inline float scaled_bessel_i_of_float(float x) {
  const double z = std::fabs(x), small = 8.0 < z ? 8.0 : z, large = z < 8.0 ? 8.0 : z;
  const double near = bessel_i_near<order, M>(small) * exp_in_double<M>(-small);
  const float y = static_cast<float>(z < 8.0 ? near : scaled_bessel_i_far<order, M>(large));
  const float result = x == x ? y : x;
  return order == 0 ? result : std::copysign(result, x);
}
template <int order, class M = Separate>
inline float bessel_i_of_float(float x) {
  const double z = std::fabs(x), small = 8.0 < z ? 8.0 : z;
  double large = z < 8.0 ? 8.0 : z;
  large = 200.0 < large ? 200.0 : large;  // infinite there
  const double far = scaled_bessel_i_far<order, M>(large) * exp_in_double<M>(large);
  const float y = static_cast<float>(z < 8.0 ? bessel_i_near<order, M>(small) : far);
  const float result = x == x ? y : x;
  return order == 0 ? result : std::copysign(result, x);
}

/// The logarithm of the normal distribution function. Far below 0 by Abramowitz and Stegun 26.2.12.
inline double log_ndtr(double x) {
  const double z = x * std::sqrt(0.5);
  if (x > -1) return std::log1p(-std::erfc(z) / 2);
  if (!(x < -20)) return std::log(std::erfc(-z) / 2);
  double sum = 1, term = 1;
  for (int k = 1; k <= 10; ++k) sum += term *= -(2 * k - 1) / (x * x);
  return -x * x / 2 - std::log(-x * std::sqrt(2 * pi)) + std::log(sum);
}

}  // namespace taper::portable::math

// ---- the operators' functors ----

namespace taper::portable {

template <class T, class M = math::Separate>
struct Erfinv {
  T operator()(T x) const { return math::erfinv<M>(x); }
};
template <class T, class M = math::Separate>
struct Lgamma {
  T operator()(T x) const { return math::lgamma(x); }
};
template <class M>
struct Lgamma<float, M> {
  static constexpr bool has_easy = true;
  static bool is_hard(float x) { return !(x > 0.0f && x < HUGE_VALF); }
  static float easy(float x) { return static_cast<float>(math::log_gamma_of_float<M>(x)); }
  float operator()(float x) const {
    return is_hard(x) ? static_cast<float>(math::lgamma<13>(x)) : easy(x);
  }
};
template <class T>
struct Digamma {
  T operator()(T x) const { return static_cast<T>(math::digamma(double{x})); }
};
template <class T>
struct Polygamma {
  int64_t n;
  explicit Polygamma(int64_t n) : n(n) {}
  T operator()(T x) const {
    return static_cast<T>(math::polygamma(n, double{x}, sizeof(T) == 4 ? 3 : 10));
  }
};
template <class T>
struct Zeta {
  T operator()(T s, T q) const {
    return static_cast<T>(math::zeta(double{s}, double{q}, sizeof(T) == 4 ? 3 : 10));
  }
};
template <class T, int order, class M = math::Separate>
struct BesselI {
  T operator()(T x) const {
    if constexpr (sizeof(T) == 4)
      return math::bessel_i_of_float<order, M>(x);
    else
      return math::bessel_i(order, x);
  }
};
template <class T, int order, class M = math::Separate>
struct ScaledBesselI {
  T operator()(T x) const {
    if constexpr (sizeof(T) == 4)
      return math::scaled_bessel_i_of_float<order, M>(x);
    else
      return math::scaled_bessel_i(order, x);
  }
};
template <class T, class M = math::Separate>
using I0 = BesselI<T, 0, M>;
template <class T, class M = math::Separate>
using I1 = BesselI<T, 1, M>;
template <class T, class M = math::Separate>
using I0e = ScaledBesselI<T, 0, M>;
template <class T, class M = math::Separate>
using I1e = ScaledBesselI<T, 1, M>;
template <class T>
struct LogNdtr {
  T operator()(T x) const { return static_cast<T>(math::log_ndtr(double{x})); }
};

}  // namespace taper::portable
