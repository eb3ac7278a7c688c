// Resampling along one dimension without aliasing: the filter is as wide as the step between two
// positions of the result. `Antialiasing` says which elements a position is computed from, as in
// ATen's UpSampleKernel.cpp.
#pragma once
#include "taper/kernels/portable/upsample_taps.h"

namespace taper::portable {

// A filter is 0 at a distance of `reach` and beyond, on both sides.
struct Triangle {
  static constexpr double reach = 1;
  static double at(double x) {
    x = std::fabs(x);
    return x < 1 ? 1 - x : 0;
  }
};
/// Keys's cubic convolution (see cubic.h) with a = -1/2, as in Pillow.
struct Cubic {
  static constexpr double reach = 2;
  static double at(double x) {
    constexpr double a = -0.5;
    x = std::fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
  }
};

/// The elements [first, first + count) of a line.
struct Window {
  index_t first, count;
};

template <class Filter>
class Antialiasing {
 public:
  Antialiasing(const Axis& axis, bool align_corners)
      : in_(static_cast<double>(axis.in)),
        step_(axis.step<double>(align_corners)),
        scale_(step_ > 1 ? step_ : 1) {}

  /// The largest number of elements that a position is computed from.
  index_t most() const {
    const double count = 2 * std::ceil(Filter::reach * scale_) + 1;
    return static_cast<index_t>(count < in_ ? count : in_);
  }
  /// At least out * most(). Larger extents never give a smaller number, as scratch requires.
  static index_t most_of_all(const Axis& axis) {
    const double out = static_cast<double>(axis.out), in = static_cast<double>(axis.in),
                 steps = axis.scale && out / *axis.scale > 2 * in ? out / *axis.scale : 2 * in,
                 count = 2 * Filter::reach * (steps + out) + 3 * out;
    return static_cast<index_t>(count < out * in ? count : out * in);
  }
  /// Calls put(k, weight) for the k-th element that position i is computed from.
  template <class Put>
  Window position(index_t i, const Put& put) const {
    const double support = Filter::reach * scale_, center = step_ * (static_cast<double>(i) + 0.5),
                 low = center - support + 0.5, high = center + support + 0.5,
                 last = high < in_ ? high : in_;
    Window window{low > 0 ? static_cast<index_t>(low < in_ ? low : in_) : 0, 0};
    window.count = static_cast<index_t>(last) - window.first;
    if (window.count < 0) window.count = 0;
    if (window.count > most()) window.count = most();
    const auto weight = [&](index_t k) {
      return Filter::at((static_cast<double>(window.first + k) - center + 0.5) / scale_);
    };
    double total = 0;
    for (index_t k = 0; k < window.count; ++k) total += weight(k);
    for (index_t k = 0; k < window.count; ++k) put(k, total == 0 ? 0 : weight(k) / total);
    return window;
  }

 private:
  double in_, step_, scale_;
};

}  // namespace taper::portable
