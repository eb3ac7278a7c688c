// The largest of some elements, as pooling defines it.
#pragma once
#include <limits>

#include "taper/runtime/core/span.h"

namespace taper::portable {

/// What is below every value.
template <class T>
constexpr T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::min();
}

/// The greater, or the lesser; NaN wins. In this form a branch is left for NaN alone, which can be
/// foreseen.
template <class T>
constexpr T greater_of(T a, T b) {
  const T greater = b > a ? b : a;
  return b != b ? b : greater;
}
template <class T>
constexpr T lesser_of(T a, T b) {
  const T lesser = b < a ? b : a;
  return b != b ? b : lesser;
}

/// The largest element seen and its position: the first of equal ones; a NaN wins over everything.
template <class T>
struct Peak {
  index_t at;  ///< of the first element that there is
  T value = lowest<T>();

  void see(T v, index_t position) {
    if (v > value || v != v) value = v, at = position;
  }
};

}  // namespace taper::portable
