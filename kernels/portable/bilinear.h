// The four elements of a plane that bilinear interpolation reads, for regions of images.
#pragma once
#include "taper/kernels/portable/elements.h"
#include "taper/runtime/core/span.h"

namespace taper::portable {

/// Where a coordinate lies between two elements of a line.
template <class T>
struct Between {
  index_t low, high;
  T before, after;  ///< the weights of `low` and `high`

  /// Outside of the elements, the nearest one counts. NaN counts as 0.
  static Between at(T x, index_t size) {
    if (!(x > 0)) x = 0;
    const index_t low = x < static_cast<T>(size) ? static_cast<index_t>(x) : size;
    if (low >= size - 1) return {size - 1, size - 1, 1, 0};
    const T rest = x - static_cast<T>(low);
    return {low, low + 1, 1 - rest, rest};
  }
};

/// Four elements with their weights.
template <class T>
struct Corners {
  index_t at[4];
  T weight[4];

  Corners() = default;
  Corners(const Between<T>& y, const Between<T>& x, index_t width)
      : at{y.low * width + x.low, y.low * width + x.high, y.high * width + x.low,
           y.high * width + x.high},
        weight{y.before * x.before, y.before * x.after, y.after * x.before, y.after * x.after} {}

  T of(const T* plane) const {
    return weight[0] * plane[at[0]] + weight[1] * plane[at[1]] + weight[2] * plane[at[2]] +
           weight[3] * plane[at[3]];
  }
};

}  // namespace taper::portable
