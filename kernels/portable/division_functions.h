// Division and its rests, rounded in every way. T is float, double or int64_t; zero divisors of
// integers are refused before.
#pragma once
#include <cmath>
#include <string_view>

#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/pointwise.h"

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
enum class Rounding { none, floor, truncate };
inline Rounding rounding_of(Maybe<std::string_view> mode) {
  return !mode ? Rounding::none : *mode == "floor" ? Rounding::floor : Rounding::truncate;
}
template <class T>
struct DivMode {
  using parameters = Parameters<Maybe<std::string_view>>;
  Rounding rounding;
  explicit DivMode(Maybe<std::string_view> mode) : rounding(rounding_of(mode)) {}
  T operator()(T a, T b) const {
    if (rounding == Rounding::floor) return floor_divide(a, b);
    if (rounding == Rounding::truncate || std::is_integral_v<T>) return truncate_divide(a, b);
    return a / b;
  }
};
template <class T>
struct DivScalarMode {
  using parameters = Parameters<Scalar, Maybe<std::string_view>>;
  T b;
  DivMode<T> divide;
  DivScalarMode(Scalar other, Maybe<std::string_view> mode) : b(other.to<T>()), divide(mode) {}
  T operator()(T a) const { return divide(a, b); }
};
/// The rest of a division rounded towards zero: it has the sign of a.
template <class T>
struct Fmod {
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return b == 0 || b == -1 ? 0 : a % b;
    else
      return std::fmod(a, b);
  }
};
/// The rest of a division rounded towards minus infinity: it has the sign of b.
template <class T>
struct Remainder {
  T operator()(T a, T b) const {
    const T rest = Fmod<T>()(a, b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
  }
};

}  // namespace taper::portable
