// The largest of several elements, as pooling defines it.
#pragma once
#include <limits>

#include "taper/runtime/core/span.h"

namespace taper::portable {

/// Less than or equal to every value.
template <class T>
constexpr T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::min();
}

/// The greater or the lesser of two; NaN wins. In this form the only branch is for NaN, which a
/// processor predicts well.
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

/// The largest element seen, and its position: the first of equal ones. A NaN wins over everything.
template <class T>
struct Peak {
  index_t at;  ///< starts at the first element of the window
  T value = lowest<T>();

  void see(T v, index_t position) {
    if (v > value || v != v) value = v, at = position;
  }
};

}  // namespace taper::portable
