// torchvision's operators for detectors. A box is x1, y1, x2, y2. `rois` (count, 5) are boxes with
// the number of their image in front; `spatial_scale` brings them to the elements of `input`
// (batch, channels, height, width). Tensors have floating dtypes, and those of a call have one.
// Errors: sizes that do not fit each other, an image that is not in the batch.
#pragma once
#include <utility>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// The boxes (n, 4) that remain, as positions in descending order of `scores` (n). A box is dropped
/// if a better one that remains overlaps it: by more than iou_threshold of the area that both
/// cover. How many remain depends on data. Equal scores keep their order; NaN is the best.
inline Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold,
                  Location here = Location::current()) {
  return call<ops::torchvision_nms>(here, boxes, scores, iou_threshold);
}

/// Each box cut into bins, and the mean of bilinear samples in each bin: (count, channels,
/// pooled_height, pooled_width). A bin has sampling_ratio² samples or, if that is 0 or less, about
/// one for each element. `aligned` moves boxes by half an element. Samples outside are 0.
inline Tensor roi_align(const Tensor& input, const Tensor& rois, double spatial_scale,
                        Dim pooled_height, Dim pooled_width, int64_t sampling_ratio = -1,
                        bool aligned = false, Location here = Location::current()) {
  return call<ops::torchvision_roi_align>(here, input, rois, spatial_scale, pooled_height,
                                          pooled_width, sampling_ratio, aligned);
}
/// The largest element of each bin, and its place height * width in the channel; -1 for no element.
/// Boxes are rounded to whole elements.
inline std::pair<Tensor, Tensor> roi_pool(const Tensor& input, const Tensor& rois,
                                          double spatial_scale, Dim pooled_height, Dim pooled_width,
                                          Location here = Location::current()) {
  auto [out, argmax] = call<ops::torchvision_roi_pool>(here, input, rois, spatial_scale,
                                                       pooled_height, pooled_width);
  return {out, argmax};
}
/// `roi_align` in which each bin reads channels of its own, so there are fewer in the result. The
/// second result is the channel that was read.
inline std::pair<Tensor, Tensor> ps_roi_align(const Tensor& input, const Tensor& rois,
                                              double spatial_scale, Dim pooled_height,
                                              Dim pooled_width, int64_t sampling_ratio = -1,
                                              Location here = Location::current()) {
  auto [out, mapping] = call<ops::torchvision_ps_roi_align>(
      here, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio);
  return {out, mapping};
}
/// The same with the mean of the elements of each bin, whose box is rounded to whole elements.
inline std::pair<Tensor, Tensor> ps_roi_pool(const Tensor& input, const Tensor& rois,
                                             double spatial_scale, Dim pooled_height,
                                             Dim pooled_width,
                                             Location here = Location::current()) {
  auto [out, mapping] = call<ops::torchvision_ps_roi_pool>(here, input, rois, spatial_scale,
                                                           pooled_height, pooled_width);
  return {out, mapping};
}

/// A 2-dim convolution whose taps are moved by `offset`, (batch, offset groups × taps × 2, height,
/// width) of the result: down and right, in elements. `mask` (batch, offset groups × taps, height,
/// width) are factors; without use_mask the argument is not read. `weight` is (out, in / groups,
/// kernel height, kernel width), `bias` (out).
inline Tensor deform_conv2d(const Tensor& input, const Tensor& weight, const Tensor& offset,
                            const Tensor& mask, const Tensor& bias, Dim stride_h, Dim stride_w,
                            Dim pad_h, Dim pad_w, Dim dilation_h, Dim dilation_w, Dim groups,
                            Dim offset_groups, bool use_mask, Location here = Location::current()) {
  return call<ops::torchvision_deform_conv2d>(here, input, weight, offset, mask, bias, stride_h,
                                              stride_w, pad_h, pad_w, dilation_h, dilation_w,
                                              groups, offset_groups, use_mask);
}

}  // namespace taper::eager
