// The scaled complementary error function, and the inverse of the normal distribution function.
// Both are computed in double.
#pragma once
#include <cmath>

#include "taper/kernels/portable/special_functions.h"

namespace taper::portable::math {

/// exp(x²). The square is computed in two parts, so that its rounding is not magnified: W. Cody,
/// "Rational Chebyshev approximations for the error function", Math. Comp. 23, 1969.
inline double exp_of_square(double x) {
  if (!(std::fabs(x) < 27)) return x != x ? x : HUGE_VAL;
  const double near = std::trunc(x * 16) / 16;  // its square is exact
  return std::exp(near * near) * std::exp((x - near) * (x + near));
}

/// exp(x²) erfc(x). Beyond 9 by the asymptotic series DLMF 7.12.1; below 0 by erfc(-x) = 2 -
/// erfc(x).
inline double erfcx(double x) {
  if (x < 0) return 2 * exp_of_square(x) - erfcx(-x);
  if (!(x > 9)) return exp_of_square(x) * std::erfc(x);
  const double step = -0.5 / (x * x);
  double sum = 0;
  for (int k = 16; k >= 1; --k) sum = step * (2 * k - 1) * (1 + sum);
  return (1 + sum) / (x * std::sqrt(pi));
}

/// The y with Φ(y) = p: M. Wichura, "Algorithm AS 241: the percentage points of the normal
/// distribution", Applied Statistics 37, 1988 (PPND16, relative error about 1e-16).
inline double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return std::nan("");
  if (p == 0 || p == 1) return p == 0 ? -HUGE_VAL : HUGE_VAL;
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q *
           polynomial<Separate>(r, 2.5090809287301226727e+3, 3.3430575583588128105e+4,
                                6.7265770927008700853e+4, 4.5921953931549871457e+4,
                                1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                1.3314166789178437745e+2, 3.3871328727963666080e0) /
           polynomial<Separate>(r, 5.2264952788528545610e+3, 2.8729085735721942674e+4,
                                3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                4.2313330701600911252e+1, 1.0);
  }
  const double tail = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  double y;
  if (tail <= 5) {
    const double r = tail - 1.6;
    y = polynomial<Separate>(r, 7.74545014278341407640e-4, 2.27238449892691845833e-2,
                             2.41780725177450611770e-1, 1.27045825245236838258e0,
                             3.64784832476320460504e0, 5.76949722146069140550e0,
                             4.63033784615654529590e0, 1.42343711074968357734e0) /
        polynomial<Separate>(r, 1.05075007164441684324e-9, 5.47593808499534494600e-4,
                             1.51986665636164571966e-2, 1.48103976427480074590e-1,
                             6.89767334985100004550e-1, 1.67638483018380384940e0,
                             2.05319162663775882187e0, 1.0);
  } else {
    const double r = tail - 5;
    y = polynomial<Separate>(r, 2.01033439929228813265e-7, 2.71155556874348757815e-5,
                             1.24266094738807843860e-3, 2.65321895265761230930e-2,
                             2.96560571828504891230e-1, 1.78482653991729133580e0,
                             5.46378491116411436990e0, 6.65790464350110377720e0) /
        polynomial<Separate>(r, 2.04426310338993978564e-15, 1.42151175831644588870e-7,
                             1.84631831751005468180e-5, 7.86869131145613259100e-4,
                             1.48753612908506148525e-2, 1.36929880922735805310e-1,
                             5.99832206555887937690e-1, 1.0);
  }
  return q < 0 ? -y : y;
}

}  // namespace taper::portable::math

// ---- the operators' functors ----

namespace taper::portable {

template <class T>
struct Erfcx {
  T operator()(T x) const { return static_cast<T>(math::erfcx(double{x})); }
};
template <class T>
struct Ndtri {
  T operator()(T p) const { return static_cast<T>(math::ndtri(double{p})); }
};

}  // namespace taper::portable
