// What average pooling divides by.
#pragma once
#include <type_traits>

#include "taper/kernels/portable/division.h"
#include "taper/kernels/portable/windows.h"

namespace taper::portable {

struct Average {
  Windows windows;
  bool count_padding;
  int64_t divisor;  ///< 0: the number of elements that a window covers
};

/// How many elements window `o` covers along dimension d. One that ceil_mode cut off counts padding
/// up to its end only.
inline index_t covered(const Average& p, int d, index_t o) {
  const Window& w = p.windows.window[d];
  const index_t first = p.windows.tap(d, o, 0), padding = static_cast<index_t>(w.padding),
                kernel = static_cast<index_t>(w.kernel);
  const index_t low = p.count_padding ? -padding : 0,
                high = p.windows.in[d] + (p.count_padding ? padding : 0);
  const index_t begin = first > low ? first : low,
                end = first + kernel < high ? first + kernel : high;
  return end > begin ? end - begin : 0;
}
/// What the sums of a row of windows are divided by.
class Divisors {
 public:
  Divisors(const Average& p, index_t depth, index_t height)
      : p_(p), above_(p.divisor != 0 ? 0 : covered(p, 0, depth) * covered(p, 1, height)) {}
  index_t operator[](index_t o) const {
    return p_.divisor != 0 ? static_cast<index_t>(p_.divisor) : above_ * covered(p_, 2, o);
  }

 private:
  const Average& p_;
  index_t above_;
};

/// Integers are rounded towards zero.
template <class T>
T mean_of(T sum, index_t divisor) {
  if constexpr (std::is_floating_point_v<T>) return sum / static_cast<T>(divisor);
  return truncate_divide(sum, static_cast<T>(divisor));
}

}  // namespace taper::portable
