// Interval arithmetic over int64, saturating: the ends of int64 stand for "no limit known".
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

namespace taper::internal {

struct Bounds {
  static constexpr int64_t least = std::numeric_limits<int64_t>::min(),
                           most = std::numeric_limits<int64_t>::max();
  int64_t lower = least, upper = most;

  bool is_point() const { return lower == upper; }
};

constexpr bool is_infinite(int64_t v) { return v == Bounds::least || v == Bounds::most; }
constexpr int64_t saturate(__int128 v) {
  return v < Bounds::least  ? Bounds::least
         : v > Bounds::most ? Bounds::most
                            : static_cast<int64_t>(v);
}
constexpr int64_t product(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (is_infinite(a) || is_infinite(b)) return (a < 0) == (b < 0) ? Bounds::most : Bounds::least;
  return saturate(static_cast<__int128>(a) * b);
}
/// Rounds towards minus infinity; `b > 0`.
constexpr int64_t quotient(int64_t a, int64_t b) {
  if (is_infinite(a)) return a;
  if (is_infinite(b)) return a < 0 ? -1 : 0;
  return a / b - (a % b < 0);
}

inline Bounds operator+(Bounds a, Bounds b) {
  const auto end = [](int64_t x, int64_t y, int64_t infinity) {
    return x == infinity || y == infinity ? infinity : saturate(static_cast<__int128>(x) + y);
  };
  return {end(a.lower, b.lower, Bounds::least), end(a.upper, b.upper, Bounds::most)};
}
inline Bounds operator*(Bounds a, Bounds b) {
  const auto [lower, upper] = std::minmax({product(a.lower, b.lower), product(a.lower, b.upper),
                                           product(a.upper, b.lower), product(a.upper, b.upper)});
  return {lower, upper};
}
inline Bounds operator/(Bounds a, Bounds b) {
  if (b.lower <= 0) return {};
  const auto [lower, upper] = std::minmax({quotient(a.lower, b.lower), quotient(a.lower, b.upper),
                                           quotient(a.upper, b.lower), quotient(a.upper, b.upper)});
  return {lower, upper};
}
inline Bounds operator%(Bounds a, Bounds b) {
  if (b.lower <= 0) return {};
  const int64_t most = is_infinite(b.upper) ? b.upper : b.upper - 1;
  return {0, a.lower >= 0 ? std::min(a.upper, most) : most};
}
inline Bounds min(Bounds a, Bounds b) {
  return {std::min(a.lower, b.lower), std::min(a.upper, b.upper)};
}
inline Bounds max(Bounds a, Bounds b) {
  return {std::max(a.lower, b.lower), std::max(a.upper, b.upper)};
}

}  // namespace taper::internal
