// Regions of images: rows of (image, x1, y1, x2, y2), as torchvision's poolings take them.
#pragma once
#include <cmath>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/elements.h"

namespace taper::portable {

/// Limits a coordinate, so that sums of two fit an integer. NaN becomes the lower limit.
template <class T>
index_t to_position(T x) {
  constexpr index_t limit = 1 << 29;
  return x > T(limit) ? limit : x >= T(-limit) ? static_cast<index_t>(x) : -limit;
}

/// Every row must name an image of the batch. Its number is rounded towards zero.
template <class T>
Error check_images(Context& context, View<const T> rois, index_t images) {
  const T* roi = rois.data();
  for (index_t k = 0; k < rois.size(0); ++k, roi += 5)
    if (!(roi[0] > -1 && roi[0] < static_cast<T>(images)))
      return context.fail(Error::invalid_argument,
                          TAPER_TEXT("rois names image {}, which is outside [0, {})"),
                          to_position(roi[0]), images);
  return Error::ok;
}

/// The part [begin, end) of a line of elements.
struct Part {
  index_t begin, end;

  /// Cut off at the ends of a line. A size below 0 counts as 0.
  static Part within(index_t begin, index_t end, index_t size) {
    const auto inside = [size](index_t x) { return x < 0 || size < 0 ? 0 : x > size ? size : x; };
    return {inside(begin), inside(end)};
  }
  bool is_empty() const { return end <= begin; }
  index_t size() const { return end - begin; }
};

/// How a side of a box is cut into bins, and each bin into samples.
template <class T>
struct Side {
  T start, bin;
  index_t samples;  ///< below 0 if the box is turned over

  /// `shortest` is the least length; a sampling_ratio of 0 or less asks for one sample for each
  /// element of the image.
  Side(T start, T end, T shortest, index_t bins, int64_t sampling_ratio) : start(start) {
    const T length = end - start < shortest ? shortest : end - start;
    bin = length / static_cast<T>(bins);
    samples = sampling_ratio > 0 ? static_cast<index_t>(sampling_ratio)
                                 : to_position(std::ceil(length / static_cast<T>(bins)));
  }
  /// Where sample `i` of a bin lies.
  T at(index_t b, index_t i) const {
    return start + static_cast<T>(b) * bin +
           (static_cast<T>(i) + T(0.5)) * bin / static_cast<T>(samples);
  }
  /// The samples of bin `b` that lie in [-1, size]: others read nothing, nor does a box with a NaN.
  /// Positions ascend, or descend if a box is turned over.
  Part inside(index_t b, index_t size) const {
    const T end = static_cast<T>(size);
    const auto first = [&](auto holds) {  // the first sample that `holds`, which stays true
      index_t low = 0, high = samples;
      while (low < high) {
        const index_t middle = low + (high - low) / 2;
        if (holds(at(b, middle)))
          high = middle;
        else
          low = middle + 1;
      }
      return low;
    };
    if (bin < 0) return {first([&](T x) { return x <= end; }), first([&](T x) { return x < -1; })};
    return {first([&](T x) { return x >= -1; }), first([&](T x) { return x > end; })};
  }
};

}  // namespace taper::portable
