// Division rounded to a whole number. T is float, double or a signed integer.
#pragma once
#include <cmath>
#include <type_traits>

#include "taper/kernels/portable/elements.h"

namespace taper::portable {

/// The quotient rounded towards minus infinity; exact for integers.
template <class T>
T floor_divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if (b == -1) return wrapping_neg(a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  } else {
    // fmod is exact, so that a - fmod(a, b) is a multiple of b up to one rounding: better than
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
template <class T>
T truncate_divide(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return b == 0 ? 0 : b == -1 ? wrapping_neg(a) : a / b;
  else
    return std::trunc(a / b);
}

}  // namespace taper::portable
