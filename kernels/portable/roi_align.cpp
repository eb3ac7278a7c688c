// Means of bilinear samples in the bins of boxes: He et al., Mask R-CNN, arXiv:1703.06870; and Li
// et al., Light-Head R-CNN, arXiv:1711.07264, for bins that read channels of their own.
#include <limits>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/bilinear.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/regions.h"
#include "taper/kernels/shapes/detection.h"

namespace taper::portable {
namespace {

/// One box on the elements of an image.
template <class T>
struct Region {
  index_t image;
  Side<T> y, x;

  Region(const T* roi, T scale, T shift, T shortest, index_t down, index_t right,
         int64_t sampling_ratio)
      : image(static_cast<index_t>(roi[0])),
        y(roi[2] * scale - shift, roi[4] * scale - shift, shortest, down, sampling_ratio),
        x(roi[1] * scale - shift, roi[3] * scale - shift, shortest, right, sampling_ratio) {}

  /// Calls f(corners) for each sample of a bin that lies in the image, row by row.
  template <class F>
  void for_each_sample(index_t row, index_t column, index_t height, index_t width,
                       const F& f) const {
    const Part rows = y.inside(row, height), columns = x.inside(column, width);
    for (index_t i = rows.begin; i < rows.end; ++i) {
      const auto down = Between<T>::at(y.at(row, i), height);
      for (index_t j = columns.begin; j < columns.end; ++j)
        f(Corners<T>(down, Between<T>::at(x.at(column, j), width), width));
    }
  }
  T count() const { return static_cast<T>(y.samples) * static_cast<T>(x.samples); }
};

/// Samples are gathered before they are read, so that a channel is read at one go.
template <class T>
class Samples {
 public:
  Samples(const T* planes, T* out, index_t channels, index_t plane, index_t bins)
      : planes_(planes), out_(out), channels_(channels), plane_(plane), bins_(bins) {}
  ~Samples() { flush(); }
  Samples(const Samples&) = delete;
  Samples& operator=(const Samples&) = delete;

  void add(index_t bin, const Corners<T>& corners) {
    if (count_ == most) flush();
    bin_[count_] = bin, corners_[count_++] = corners;
  }

 private:
  static constexpr int most = 64;

  void flush() {
    for (index_t c = 0; c < channels_; ++c) {
      const T* plane = planes_ + c * plane_;
      T* y = out_ + c * bins_;
      for (int i = 0; i < count_;) {
        const index_t bin = bin_[i];
        T sum = y[bin];
        do sum += corners_[i].of(plane);
        while (++i < count_ && bin_[i] == bin);
        y[bin] = sum;
      }
    }
    count_ = 0;
  }

  const T* planes_;
  T* out_;
  index_t channels_, plane_, bins_;
  int count_ = 0;
  index_t bin_[most];
  Corners<T> corners_[most];
};

constexpr index_t channels_per_task = 64;

template <class T>
Error roi_align(Context& context, View<const T> input, View<const T> rois, double spatial_scale,
                int64_t down, int64_t right, int64_t sampling_ratio, bool aligned, View<T> out) {
  const index_t channels = input.size(1), height = input.size(2), width = input.size(3),
                plane = height * width, bins = static_cast<index_t>(down * right);
  if (out.numel() == 0) return Error::ok;
  TAPER_TRY(check_images(context, rois, input.size(0)));
  const index_t parts = pieces(channels, channels_per_task);
  parallel_for(context.threads, rois.size(0) * parts, [&](index_t task) {
    const index_t k = task / parts, first = task % parts * channels_per_task,
                  count =
                      channels - first < channels_per_task ? channels - first : channels_per_task;
    const Region<T> region(rois.data() + k * 5, static_cast<T>(spatial_scale),
                           aligned ? T(0.5) : T(0),
                           aligned ? -std::numeric_limits<T>::infinity() : T(1),
                           static_cast<index_t>(down), static_cast<index_t>(right), sampling_ratio);
    T* y = out.data() + (k * channels + first) * bins;
    for (index_t i = 0; i < count * bins; ++i) y[i] = 0;
    if (plane > 0) {
      Samples<T> samples(input.data() + (region.image * channels + first) * plane, y, count, plane,
                         bins);
      for (index_t b = 0; b < bins; ++b)
        region.for_each_sample(b / static_cast<index_t>(right), b % static_cast<index_t>(right),
                               height, width,
                               [&](const Corners<T>& corners) { samples.add(b, corners); });
    }
    const T all = region.count() < 1 ? T(1) : region.count();
    for (index_t i = 0; i < count * bins; ++i) y[i] /= all;
  });
  return Error::ok;
}

template <class T>
Error ps_roi_align(Context& context, View<const T> input, View<const T> rois, double spatial_scale,
                   int64_t down, int64_t right, int64_t sampling_ratio, View<T> out,
                   View<int32_t> mapping) {
  const index_t channels = input.size(1), height = input.size(2), width = input.size(3),
                plane = height * width, bins = static_cast<index_t>(down * right);
  if (out.numel() == 0) return Error::ok;
  TAPER_TRY(check_images(context, rois, input.size(0)));
  parallel_for(context.threads, rois.size(0), [&](index_t k) {
    const Region<T> region(rois.data() + k * 5, static_cast<T>(spatial_scale), T(0.5),
                           -std::numeric_limits<T>::infinity(), static_cast<index_t>(down),
                           static_cast<index_t>(right), sampling_ratio);
    const T* image = input.data() + region.image * channels * plane;
    for (index_t c = 0; c < channels; ++c) {
      T sum = 0;
      const index_t b = c % bins;
      if (plane > 0)
        region.for_each_sample(
            b / static_cast<index_t>(right), b % static_cast<index_t>(right), height, width,
            [&](const Corners<T>& corners) { sum += corners.of(image + c * plane); });
      out.data()[k * channels + c] = sum / region.count();
      mapping.data()[k * channels + c] = static_cast<int32_t>(c);
    }
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(torchvision_roi_align, f32, roi_align<float>)
TAPER_KERNEL(torchvision_roi_align, f64, roi_align<double>)
TAPER_KERNEL(torchvision_ps_roi_align, f32, ps_roi_align<float>)
TAPER_KERNEL(torchvision_ps_roi_align, f64, ps_roi_align<double>)

}  // namespace taper::portable
