// Joins the elements that a window covers, for many windows side by side.
#pragma once
#include <type_traits>

#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/maximum.h"

namespace taper::portable::taps {

/// How two taps become one: `start` is the value of a window after its first tap, `none` of one
/// that meets no tap.
struct Greatest {
  template <class T>
  static T none() {
    return lowest<T>();
  }
  template <class T>
  static T start(T x) {
    return x;
  }
  template <class T>
  static T join(T a, T b) {
    return greater_of(a, b);
  }
};
struct Total {
  template <class T>
  static T none() {
    return T(0);
  }
  template <class T>
  static T start(T x) {
    return wrapping_add(T(0), x);  // -0 becomes 0
  }
  template <class T>
  static T join(T a, T b) {
    return wrapping_add(a, b);
  }
};

/// y[i] = x[0][i] joined with x[1][i] …, or y[i] joined with all of them if `goes_on`.
template <class Join, int count, bool goes_on, class T>
void join_some(const T* const* x, index_t n, T* y) {
  // single names instead of an array: the compiler vectorises no loop over a list of pointers
  const auto tap = [x](int k) { return x[k < count ? k : 0]; };
  const T *const a = tap(0), *const b = tap(1), *const c = tap(2), *const d = tap(3),
                 *const e = tap(4), *const f = tap(5), *const g = tap(6), *const h = tap(7),
                 *const j = tap(8);
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) {
    T value = goes_on ? Join::join(y[i], a[i]) : Join::start(a[i]);
    if constexpr (count > 1) value = Join::join(value, b[i]);
    if constexpr (count > 2) value = Join::join(value, c[i]);
    if constexpr (count > 3) value = Join::join(value, d[i]);
    if constexpr (count > 4) value = Join::join(value, e[i]);
    if constexpr (count > 5) value = Join::join(value, f[i]);
    if constexpr (count > 6) value = Join::join(value, g[i]);
    if constexpr (count > 7) value = Join::join(value, h[i]);
    if constexpr (count > 8) value = Join::join(value, j[i]);
    y[i] = value;
  }
}

/// Several taps at a time, so that their value stays in a register.
inline constexpr int most_taps = 9;

/// The same for at most `most_taps` taps, whose number is known when it runs. y overlaps no tap.
template <class Join, class T>
void join_taps(const T* const* x, int count, bool goes_on, index_t n, T* y) {
  for (int some; count > 0; count -= some, x += some, goes_on = true) {
    const auto join = [&](auto number) {
      constexpr int k = decltype(number)::value;
      some = k;
      if (goes_on)
        join_some<Join, k, true>(x, n, y);
      else
        join_some<Join, k, false>(x, n, y);
    };
    if (count >= 9)
      join(std::integral_constant<int, 9>());
    else if (count >= 4)
      join(std::integral_constant<int, 4>());
    else if (count == 3)
      join(std::integral_constant<int, 3>());
    else if (count == 2)
      join(std::integral_constant<int, 2>());
    else
      join(std::integral_constant<int, 1>());
  }
}

/// Collects the taps of some windows that lie side by side, and joins them.
template <class Join, class T>
class Taps {
 public:
  Taps(index_t n, T* y) : n_(n), y_(y) {}
  void add(const T* x) {
    if (count_ == most_taps) join();
    taps_[count_++] = x;
  }
  void finish() {
    if (count_ > 0) return join();
    if (!goes_on_)
      for (index_t i = 0; i < n_; ++i) y_[i] = Join::template none<T>();
  }

 private:
  void join() {
    join_taps<Join>(taps_, count_, goes_on_, n_, y_);
    goes_on_ = true, count_ = 0;
  }

  index_t n_;
  T* y_;
  const T* taps_[most_taps];
  int count_ = 0;
  bool goes_on_ = false;
};

}  // namespace taper::portable::taps
