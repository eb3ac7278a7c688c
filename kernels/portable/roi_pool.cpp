// The largest elements in the bins of boxes: Girshick, Fast R-CNN, arXiv:1504.08083; and means over
// bins that read channels of their own: Dai et al., R-FCN, arXiv:1605.06409. Boxes are rounded to
// whole elements.
#include <limits>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/regions.h"
#include "taper/kernels/shapes/detection.h"

namespace taper::portable {
namespace {

/// Bin `b` of a side that begins at `start`, cut off at the ends of the image. In roi_pool the bin
/// is rounded to elements before it is moved to `start`.
template <class T>
Part bin_of(index_t b, T bin, T start, bool rounds_first, index_t size) {
  const T moved = rounds_first ? T(0) : start;
  const index_t after = rounds_first ? to_position(start) : 0;
  return Part::within(to_position(std::floor(static_cast<T>(b) * bin + moved)) + after,
                      to_position(std::ceil(static_cast<T>(b + 1) * bin + moved)) + after, size);
}

/// A side of a box, in elements of the image.
template <class T>
struct WholeSide {
  T start, bin;
  /// `last` is 1 if the end is part of the box.
  WholeSide(T from, T to, T scale, T last, index_t bins) : start(std::round(from * scale)) {
    const T length = std::round(to * scale) - start + last;
    bin = (length > 1 ? length : T(1)) / static_cast<T>(bins);
  }
};

/// Boxes on images, of which each has `down` times `right` bins. `last` as in WholeSide.
template <class T>
struct Boxes {
  View<const T> input, rois;
  T scale, last;
  index_t down, right;

  /// Calls f(k, y, x, image) for each box in parallel, with its sides and the image it lies on.
  template <class F>
  Error for_each(Context& context, const F& f) const {
    TAPER_TRY(check_images(context, rois, input.size(0)));
    const index_t image_size = input.size(1) * input.size(2) * input.size(3);
    parallel_for(context.threads, rois.size(0), [&](index_t k) {
      const T* roi = rois.data() + k * 5;
      f(k, WholeSide<T>(roi[2], roi[4], scale, last, down),
        WholeSide<T>(roi[1], roi[3], scale, last, right),
        input.data() + static_cast<index_t>(roi[0]) * image_size);
    });
    return Error::ok;
  }
};

/// The largest element of a window, and its place in the plane; -1 if there is none.
template <class T>
void largest_of(const T* plane, index_t width, Part rows, Part columns, T& most, int32_t& at) {
  at = -1;
  most = rows.is_empty() || columns.is_empty() ? T(0) : std::numeric_limits<T>::lowest();
  for (index_t h = rows.begin; h < rows.end; ++h)
    for (index_t w = columns.begin; w < columns.end; ++w)
      if (plane[h * width + w] > most)
        most = plane[h * width + w], at = static_cast<int32_t>(h * width + w);
}

template <class T>
Error roi_pool(Context& context, View<const T> input, View<const T> rois, double spatial_scale,
               int64_t pooled_height, int64_t pooled_width, View<T> out, View<int32_t> argmax) {
  const auto down = static_cast<index_t>(pooled_height), right = static_cast<index_t>(pooled_width);
  const index_t channels = input.size(1), height = input.size(2), width = input.size(3);
  if (out.numel() == 0) return Error::ok;
  const Boxes<T> boxes{input, rois, static_cast<T>(spatial_scale), 1, down, right};
  return boxes.for_each(
      context, [&](index_t k, const WholeSide<T>& y, const WholeSide<T>& x, const T* image) {
        index_t to = k * channels * down * right;
        for (index_t c = 0; c < channels; ++c)
          for (index_t i = 0; i < down; ++i)
            for (index_t j = 0; j < right; ++j, ++to)
              largest_of(image + c * height * width, width, bin_of(i, y.bin, y.start, true, height),
                         bin_of(j, x.bin, x.start, true, width), out.data()[to], argmax.data()[to]);
      });
}

template <class T>
T mean_of(const T* plane, index_t width, Part rows, Part columns) {
  if (rows.is_empty() || columns.is_empty()) return 0;
  T sum = 0;
  for (index_t h = rows.begin; h < rows.end; ++h)
    for (index_t w = columns.begin; w < columns.end; ++w) sum += plane[h * width + w];
  return sum / static_cast<T>(rows.size() * columns.size());
}

// Bins end before the last row and the last column of the image, as in torchvision.
template <class T>
Error ps_roi_pool(Context& context, View<const T> input, View<const T> rois, double spatial_scale,
                  int64_t pooled_height, int64_t pooled_width, View<T> out, View<int32_t> mapping) {
  const auto down = static_cast<index_t>(pooled_height), right = static_cast<index_t>(pooled_width);
  const index_t channels = input.size(1), height = input.size(2), width = input.size(3);
  if (out.numel() == 0) return Error::ok;
  const Boxes<T> boxes{input, rois, static_cast<T>(spatial_scale), 0, down, right};
  return boxes.for_each(
      context, [&](index_t k, const WholeSide<T>& y, const WholeSide<T>& x, const T* image) {
        for (index_t c = 0; c < channels; ++c) {
          const index_t i = c / right % down, j = c % right;
          out.data()[k * channels + c] = mean_of(image + c * height * width, width,
                                                 bin_of(i, y.bin, y.start, false, height - 1),
                                                 bin_of(j, x.bin, x.start, false, width - 1));
          mapping.data()[k * channels + c] = static_cast<int32_t>(c);
        }
      });
}

}  // namespace

TAPER_KERNEL(torchvision_roi_pool, f32, roi_pool<float>)
TAPER_KERNEL(torchvision_roi_pool, f64, roi_pool<double>)
TAPER_KERNEL(torchvision_ps_roi_pool, f32, ps_roi_pool<float>)
TAPER_KERNEL(torchvision_ps_roi_pool, f64, ps_roi_pool<double>)

}  // namespace taper::portable
