// The regularised incomplete gamma functions, and the logarithm of a Poisson probability. All are
// computed in double. P(a, x) is the integral of t^(a - 1) exp(-t) / Γ(a) from 0 to x, and
// Q(a, x) = 1 - P(a, x). The smaller of both is computed, so that the other loses no digits. The
// regions and their formulas are those of W. Gautschi, "A computational procedure for incomplete
// gamma functions", ACM TOMS 5, 1979, and of N. Temme, "The asymptotic expansion of the incomplete
// gamma functions", SIAM J. Math. Anal. 10, 1979. DLMF: the NIST Digital Library of Mathematical
// Functions.
#pragma once
#include <cmath>

#include "taper/kernels/portable/special_functions.h"

namespace taper::portable::math {

/// μ - log(1 + μ) for μ > -1, to the last digits also near 0. There, log(1 + μ) = 2 artanh(r) with
/// r = μ / (2 + μ): C. Loader, "Fast and accurate computation of binomial probabilities", 2000.
inline double log1p_defect(double mu) {
  if (!(std::fabs(mu) < 0.4)) return mu - std::log1p(mu);
  const double r = mu / (2 + mu), r2 = r * r;
  double sum = 0;
  for (int k = 31; k >= 3; k -= 2) sum = sum * r2 + 1.0 / k;
  return r * (mu - 2 * r2 * sum);
}

/// What Stirling's formula leaves of log Γ(x), x > 0: log Γ(x) - (x - 1/2) log(x) + x - log(2π)
/// / 2.
inline double log_gamma_rest(double x) {
  if (x >= 10) return stirling_tail(x);
  return log_gamma_positive<26>(x) - (x - 0.5) * std::log(x) + x - half_log_two_pi;
}

/// Γ(a + 1) for 0 <= a < 20
inline double gamma_after(double a) {
  double product = 1;
  for (; a > 1.5; a -= 1) product *= a;
  if (a <= 0.5) return std::exp(log_gamma_near_two<26>(a)) / (1 + a);
  return product * std::exp(log_gamma_near_two<26>(a - 1));
}
/// log Γ(a + 1) for a >= 0, exact relative to a near 0
inline double log_gamma_after(double a) {
  return a <= 0.5 ? log_gamma_near_two<26>(a) - std::log1p(a) : log_gamma_positive<26>(1 + a);
}

/// x^a exp(-x) / Γ(a + 1) for finite a, x > 0
inline double gamma_term(double a, double x) {
  if (a < 20) {
    if (x > 1500) return 0;  // less than the smallest double
    const double half = std::exp(-x / 2);
    return std::pow(x, a) * half / gamma_after(a) * half;
  }
  const double mu = (x - a) / a;
  const double phi = x < a / 2 ? mu - std::log(x / a) : log1p_defect(mu);
  return std::exp(-a * phi - stirling_tail(a)) / (std::sqrt(2 * pi) * std::sqrt(a));
}

/// P by its power series: DLMF 8.11.4. All terms are positive.
inline double lower_gamma_series(double a, double x, double tolerance) {
  double sum = 1, term = 1;
  for (int k = 1; term > tolerance * sum && k < 1000; ++k) sum += term *= x / (a + k);
  return gamma_term(a, x) * sum;
}
/// Q for small a and x: 1 - x^a / Γ(a + 1) plus the rest of the alternating series DLMF 8.7.3.
inline double upper_gamma_series(double a, double x, double tolerance) {
  const double log_first = a * std::log(x) - log_gamma_after(a);
  double sum = 0, term = 1;
  for (int k = 1; std::fabs(term) > tolerance && k < 100; ++k) {
    term *= -x / k;
    sum += term / (a + k);
  }
  return -std::expm1(log_first) - std::exp(log_first) * a * sum;
}
/// Q for x >= a by the continued fraction DLMF 8.9.2, in Lentz's way from its front.
inline double upper_gamma_fraction(double a, double x, double tolerance) {
  double b = x + 1 - a, d = 1 / b, c = HUGE_VAL, value = d;
  for (int k = 1; k < 1000; ++k) {
    const double numerator = -k * (k - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    const double factor = c * d;
    value *= factor;
    if (std::fabs(factor - 1) <= tolerance) break;
  }
  return gamma_term(a, x) * a * value;
}

/// Q or P where a >= 40 and x is within a quarter of a: Temme's expansion, DLMF 8.12.3 to 8.12.8.
/// With μ = x / a - 1 and η²/2 = μ - log(1 + μ), Q = erfc(η √(a/2)) / 2 + a sum in powers of 1 / a
/// and η. The coefficients follow exactly from the recurrence DLMF 8.12.12.
inline double uniform_gamma(double a, double x, bool upper) {
  constexpr int terms[] = {15, 13, 11, 9, 9, 8, 6, 4, 2};
  constexpr double coefficients[] = {
      -0.3333333333333333333,     0.08333333333333333333,     -0.01481481481481481481,
      0.001157407407407407407,    0.0003527336860670194004,   -0.0001787551440329218107,
      0.00003919263178522437782,  -2.185448510679992161e-6,   -1.854062210715159961e-6,
      8.296711340953086005e-7,    -1.76659527368260793e-7,    6.70785354340149858e-9,
      1.026180978424030804e-8,    -4.382036018453353187e-9,   9.147699582236790234e-10,  // c_0
      -0.001851851851851851852,   -0.003472222222222222222,   0.002645502645502645503,
      -0.0009902263374485596708,  0.0002057613168724279835,   -4.018775720164609053e-7,
      -0.00001809855033448997784, 7.649160916081110085e-6,    -1.6120900894563446e-6,
      4.647127802807434342e-9,    1.378633446915720959e-7,    -5.752545603517704964e-8,
      1.195162859977814732e-8,  // c_1
      0.004133597883597883598,    -0.00268132716049382716,    0.0007716049382716049383,
      2.009387860082304527e-6,    -0.0001073665322636516052,  0.00005292344882912012542,
      -0.00001276063518861872771, 3.423578734096138074e-8,    1.372195730906293321e-6,
      -6.298992138380055023e-7,   1.428061420606424179e-7,  // c_2
      0.000649434156378600823,    0.000229472093621399177,    -0.0004691894943952557121,
      0.000267720632062838853,    -0.00007561801671883976411, -2.396505113867296652e-7,
      0.00001108265411534730236,  -5.674952826991596567e-6,   1.423090073243588391e-6,  // c_3
      -0.0008618882909167116986,  0.0007840392217200666275,   -0.0002990724803031901797,
      -1.463845257884341818e-6,   0.00006641498215465122187,  -0.00003968365047179434664,
      0.0000113757269706784191,   2.507497226237532802e-10,   -1.695414953655830601e-6,  // c_4
      -0.0003367985533663581503,  -0.00006972813758365857774, 0.0002772753244959392079,
      -0.000199325705161888477,   0.00006797780477937207839,  1.419062920643967015e-7,
      -0.00001359404818976869328, 8.01847025633420154e-6,  // c_5
      0.0005313079364639922232,   -0.0005921664373536938829,  0.0002708782096718044828,
      7.902353232660327872e-7,    -0.00008153969367561968751, 0.0000561168275310624965,  // c_6
      0.0003443676068923776713,   0.00005171790908260592193,  -0.0003349316108114223631,
      0.0002812695154763237023,                            // c_7
      -0.0006526239185953094189,  0.00083949872067208728,  // c_8
  };
  const double mu = (x - a) / a, half_square = log1p_defect(mu);
  const double eta = std::copysign(std::sqrt(2 * half_square), mu);
  double sum = 0, scale = 1;
  const double* c = coefficients;
  for (const int count : terms) {
    double inner = 0;
    for (int n = count - 1; n >= 0; --n) inner = inner * eta + c[n];
    sum += inner * scale;
    c += count, scale /= a;
  }
  const double rest = sum * std::exp(-a * half_square) / (std::sqrt(2 * pi) * std::sqrt(a));
  const double z = std::copysign(std::sqrt(a * half_square), mu);
  return upper ? std::erfc(z) / 2 + rest : std::erfc(-z) / 2 - rest;
}

/// Q(a, x) if `upper`, else P(a, x). Terms below `tolerance` are left out. Values outside the
/// domain and at its borders are those of PyTorch.
inline double incomplete_gamma(double a, double x, bool upper, double tolerance = 1e-17) {
  const double one = upper ? 0 : 1;  // what P = 1 means
  if (x < 0 || a < 0) return std::nan("");
  if (a == 0) return x > 0 ? one : std::nan("");
  if (x == 0) return 1 - one;
  if (std::isinf(a)) return std::isinf(x) ? std::nan("") : 1 - one;
  if (std::isinf(x)) return one;
  if (a != a || x != x) return std::nan("");
  if (a >= 40 && std::fabs(x - a) <= a / 4) return uniform_gamma(a, x, upper);

  // Gautschi's border: above it, P is less than Q
  const double border = x < 0.25 ? std::log(0.5) / std::log(x) : x < 1.5 ? x + 0.25 : x;
  if (a > border) {
    const double p = lower_gamma_series(a, x, tolerance);
    return upper ? 1 - p : p;
  }
  const double q =
      x < 1.5 ? upper_gamma_series(a, x, tolerance) : upper_gamma_fraction(a, x, tolerance);
  return upper ? q : 1 - q;
}

/// log(mean^k exp(-mean) / k!) for a whole number k >= 0 and a mean > 0, without the cancellation
/// of large terms (Loader's form).
inline double log_poisson(double k, double mean) {
  if (k == 0) return -mean;
  return -k * log1p_defect((mean - k) / k) - log_gamma_rest(k) - 0.5 * std::log(k) -
         half_log_two_pi;
}

}  // namespace taper::portable::math

// ---- the operators' functors ----

namespace taper::portable {

template <class T, bool upper>
struct IncompleteGamma {
  T operator()(T a, T x) const {
    return static_cast<T>(
        math::incomplete_gamma(double{a}, double{x}, upper, sizeof(T) == 4 ? 1e-10 : 1e-17));
  }
};
template <class T>
using Igamma = IncompleteGamma<T, false>;
template <class T>
using Igammac = IncompleteGamma<T, true>;

}  // namespace taper::portable
