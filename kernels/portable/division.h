// Division rounded to a whole number. T is float, double or a signed integer.
#pragma once
#include <cmath>
#include <type_traits>

#include "taper/kernels/portable/elements.h"

namespace taper::portable {

/// The quotient rounded towards minus infinity. Exact for integers.
template <class T>
T floor_divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if (b == -1) return wrapping_neg(a);
    // no branch on the sign of the rest, which a processor cannot predict
    const T rest = a % b;
    return static_cast<T>(a / b - ((rest != 0) & ((rest < 0) != (b < 0))));
  } else {
    // fmod is exact, so a - fmod(a, b) is a multiple of b up to one rounding. This is better than
    // floor(a / b).
    if (b == T(0)) return a / b;
    const T rest = std::fmod(a, b);
    T quotient = (a - rest) / b;
    if (rest != T(0) && (b < T(0)) != (rest < T(0))) quotient -= T(1);
    if (quotient == T(0)) return std::copysign(T(0), a / b);
    const T whole = std::floor(quotient);
    return quotient - whole > T(0.5) ? whole + T(1) : whole;
  }
}

/// Whether double arithmetic is enough to round a / b down or towards zero. The conditions: a is
/// finite, b is neither 0 nor infinite nor NaN, and |a / b| < 2^bits with bits <= 28. Why double is
/// enough: the quotient is a fraction N / D of integers with |N| < 2^52 (both have 24 bits, and a
/// power of two goes to the one with the larger exponent). If it is not an integer, its distance to
/// every integer is at least 1 / D. Rounding it to 53 bits moves it by at most 2^-53 N / D.
template <int bits>
bool is_easy_division(float a, float b) {
  constexpr float bound = static_cast<float>(1 << bits);
  // if the product overflows, |a / b| is below the bound for every a
  return std::fabs(a) < std::fabs(b) * bound && std::fabs(b) < HUGE_VALF;
}
/// The rest of such a division rounded towards zero. It is exact: the product has at most 52 bits.
/// The rest is a multiple of the last digit of a or of b, and no larger than either.
inline float easy_rest(float a, float b) {
  const double x = a, y = b, quotient = static_cast<int32_t>(x / y);
  return std::copysign(static_cast<float>(x - quotient * y), a);
}
/// floor_divide(a, b) of such a division with bits = 21. Then the quotient in float is within 1/3
/// of the integer.
inline float easy_floor_divide(float a, float b) {
  const double quotient = static_cast<double>(a) / static_cast<double>(b);
  const int32_t towards_zero = static_cast<int32_t>(quotient);
  const int32_t whole = towards_zero - (quotient < static_cast<double>(towards_zero) ? 1 : 0);
  // -0 if the quotient is
  const float y = static_cast<float>(whole);
  return whole == 0 ? std::copysign(y, static_cast<float>(quotient)) : y;
}

template <class T>
T truncate_divide(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return b == 0 ? 0 : b == -1 ? wrapping_neg(a) : a / b;
  else
    return std::trunc(a / b);
}

}  // namespace taper::portable
