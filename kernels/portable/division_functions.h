// Division and its rests, rounded in every way. T is float, double or int64_t; zero divisors of
// integers are refused before.
#pragma once
#include <cmath>
#include <string_view>

#include "taper/kernels/portable/division.h"
#include "taper/kernels/portable/pointwise.h"

namespace taper::portable {

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
