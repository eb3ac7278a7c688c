// The functors of division and its rests, with every rounding. T is float, double or int64_t. The
// kernels refuse integer divisors of zero before.
#pragma once
#include <cmath>
#include <string_view>

#include "taper/kernels/portable/binary_functions.h"
#include "taper/kernels/portable/division.h"
#include "taper/kernels/portable/pointwise.h"

namespace taper::portable {

enum class Rounding { none, floor, truncate };
inline Rounding rounding_of(Maybe<std::string_view> mode) {
  return !mode ? Rounding::none : *mode == "floor" ? Rounding::floor : Rounding::truncate;
}
template <class T>
struct FloorDivide {
  T operator()(T a, T b) const { return floor_divide(a, b); }
};
template <>
struct FloorDivide<float> {
  static constexpr bool has_easy = true;
  static bool is_hard(float a, float b) { return !is_easy_division<21>(a, b); }
  static float easy(float a, float b) { return easy_floor_divide(a, b); }
  float operator()(float a, float b) const { return floor_divide(a, b); }
};
template <class T>
struct TruncateDivide {
  T operator()(T a, T b) const { return truncate_divide(a, b); }
};

template <class T>
struct DivMode {
  using parameters = Parameters<Maybe<std::string_view>>;
  Rounding rounding;
  explicit DivMode(Maybe<std::string_view> mode) : rounding(rounding_of(mode)) {}
  template <class Visitor>
  void visit(const Visitor& visitor) const {
    if (rounding == Rounding::floor) return visitor(FloorDivide<T>());
    if (rounding == Rounding::truncate || std::is_integral_v<T>)
      return visitor(TruncateDivide<T>());
    visitor(Div<T>());
  }
};
template <class T>
struct DivScalarMode {
  using parameters = Parameters<Scalar, Maybe<std::string_view>>;
  Scalar b;
  Rounding rounding;
  DivScalarMode(Scalar other, Maybe<std::string_view> mode)
      : b(other), rounding(rounding_of(mode)) {}
  template <class Visitor>
  void visit(const Visitor& visitor) const {
    if (rounding == Rounding::floor) return visitor(WithScalar<FloorDivide, T>(b));
    if (rounding == Rounding::truncate || std::is_integral_v<T>)
      return visitor(WithScalar<TruncateDivide, T>(b));
    visitor(WithScalar<Div, T>(b));
  }
};
/// The rest of a division rounded towards zero. It has the sign of a.
template <class T>
struct Fmod {
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return b == 0 || b == -1 ? 0 : a % b;
    else
      return std::fmod(a, b);
  }
};
template <>
struct Fmod<float> {
  static constexpr bool has_easy = true;
  static bool is_hard(float a, float b) { return !is_easy_division<28>(a, b); }
  static float easy(float a, float b) { return easy_rest(a, b); }
  float operator()(float a, float b) const { return std::fmod(a, b); }
};
/// Makes of that rest the one with the sign of b.
template <class T>
T rest_of_floor(T rest, T b) {
  const T other = wrapping_add(rest, b);
  const bool opposite = (rest != T(0)) & ((rest < T(0)) != (b < T(0)));
  return opposite ? other : rest;
}
/// The rest of a division rounded towards minus infinity. It has the sign of b.
template <class T>
struct Remainder {
  T operator()(T a, T b) const { return rest_of_floor(Fmod<T>()(a, b), b); }
};
template <>
struct Remainder<float> : Fmod<float> {
  static float easy(float a, float b) { return rest_of_floor(easy_rest(a, b), b); }
  float operator()(float a, float b) const { return rest_of_floor(std::fmod(a, b), b); }
};

// Division by a number.
template <class T>
using FmodScalar = WithScalar<Fmod, T>;
template <class T>
using RemainderScalar = WithScalar<Remainder, T>;

}  // namespace taper::portable
