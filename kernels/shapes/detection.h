// Shape rules of torchvision's operators for detectors: regions of images (boxes), and deformable
// convolutions.
#pragma once
#include "taper/kernels/shapes/convolution.h"

namespace taper {
namespace internal {

/// input (batch, channels, height, width) and rois (count, 5): each is the number of an image and
/// a box x1, y1, x2, y2. Fills the extents of the result but its channels.
template <class D>
bool region_shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& rois,
                  D pooled_height, D pooled_width, TensorType<D>& out) {
  out.dtype = input.dtype, out.rank = 4;
  out[0] = rois.rank > 0 ? rois[0] : D(0), out[1] = D(0);
  out[2] = pooled_height, out[3] = pooled_width;
  return facts.require(input.rank == 4, TAPER_TEXT("input needs 4 dimensions, got {}"),
                       D(input.rank)) &&
         facts.require(rois.rank == 2, TAPER_TEXT("rois needs 2 dimensions, got {}"),
                       D(rois.rank)) &&
         facts.equal(rois[1], D(5), TAPER_TEXT("a row of rois has {} elements, not {}")) &&
         facts.require(is_floating(input.dtype) && input.dtype == rois.dtype,
                       TAPER_TEXT("input and rois need one floating dtype")) &&
         facts.at_least(pooled_height, D(1), TAPER_TEXT("pooled_height is {}, below {}")) &&
         facts.at_least(pooled_width, D(1), TAPER_TEXT("pooled_width is {}, below {}")) &&
         facts.less(pooled_height, D(int64_t{1} << 24),
                    TAPER_TEXT("pooled_height is {}, it must be below {}")) &&
         facts.less(pooled_width, D(int64_t{1} << 24),
                    TAPER_TEXT("pooled_width is {}, it must be below {}"));
}

/// Whether a bin takes few enough samples. A call takes time for the square of their number, and
/// nothing can stop it.
template <class D>
bool sampling_is_bounded(Facts<D>& facts, int64_t sampling_ratio) {
  return facts.require(sampling_ratio <= 256,
                       TAPER_TEXT("sampling_ratio is {}, it must be at most 256"),
                       D(sampling_ratio));
}

/// region_shape for results that have the channels of input.
template <class D>
bool pooled_region_shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& rois,
                         D pooled_height, D pooled_width, TensorType<D>& out) {
  if (!region_shape(facts, input, rois, pooled_height, pooled_width, out)) return false;
  out[1] = input[1];
  return true;
}

/// The same for results in which each bin reads channels of its own. `mapping` says which ones.
template <class D>
bool sensitive_region_shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& rois,
                            D pooled_height, D pooled_width, TensorType<D>& out,
                            TensorType<D>& mapping) {
  if (!region_shape(facts, input, rois, pooled_height, pooled_width, out)) return false;
  const D bins = pooled_height * pooled_width;
  if (!facts.equal(input[1] % bins, D(0),
                   TAPER_TEXT("input's channels are not a multiple of the bins ({} remain, not "
                              "{})")))
    return false;
  out[1] = input[1] / bins;
  mapping.like(out, DType::i32);
  return facts.less(input[1], D(int64_t{1} << 31),
                    TAPER_TEXT("input has {} channels, which must be below {}"));
}

}  // namespace internal

/// boxes (n, 4) and order (m) -> (m)
template <>
struct Rule<ops::taper_nms_keep> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& boxes, const TensorType<D>& order, double,
                    TensorType<D>& out) {
    out.like(order, DType::boolean);
    return facts.require(boxes.rank == 2, TAPER_TEXT("boxes needs 2 dimensions, got {}"),
                         D(boxes.rank)) &&
           facts.equal(boxes[1], D(4), TAPER_TEXT("a box has {} elements, not {}")) &&
           facts.require(is_floating(boxes.dtype), TAPER_TEXT("boxes needs a floating dtype")) &&
           facts.require(order.rank == 1 && order.dtype == DType::i64,
                         TAPER_TEXT("order must be a vector of i64"));
  }
};

template <>
struct Rule<ops::torchvision_roi_align> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& rois, double,
                    D pooled_height, D pooled_width, int64_t sampling_ratio, bool,
                    TensorType<D>& out) {
    return internal::sampling_is_bounded(facts, sampling_ratio) &&
           internal::pooled_region_shape(facts, input, rois, pooled_height, pooled_width, out);
  }
};

/// The second result says where each largest element lies: height * width positions of i32.
template <>
struct Rule<ops::torchvision_roi_pool> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& rois, double,
                    D pooled_height, D pooled_width, TensorType<D>& out, TensorType<D>& argmax) {
    if (!internal::pooled_region_shape(facts, input, rois, pooled_height, pooled_width, out))
      return false;
    argmax.like(out, DType::i32);
    return facts.less(input[2] * input[3], D(int64_t{1} << 31),
                      TAPER_TEXT("a channel has {} elements, which must be below {}"));
  }
};

template <>
struct Rule<ops::torchvision_ps_roi_align> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& rois, double,
                    D pooled_height, D pooled_width, int64_t sampling_ratio, TensorType<D>& out,
                    TensorType<D>& mapping) {
    return internal::sampling_is_bounded(facts, sampling_ratio) &&
           internal::sensitive_region_shape(facts, input, rois, pooled_height, pooled_width, out,
                                            mapping);
  }
};

template <>
struct Rule<ops::torchvision_ps_roi_pool> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& rois, double,
                    D pooled_height, D pooled_width, TensorType<D>& out, TensorType<D>& mapping) {
    return internal::sensitive_region_shape(facts, input, rois, pooled_height, pooled_width, out,
                                            mapping);
  }
};

/// input (batch, channels, height, width), offset (batch, groups * taps * 2, down, right) and mask
/// (batch, groups * taps, down, right) -> (batch, channels * taps, down * right). `taps` are the
/// kernel's elements, and `groups` divides the channels.
template <>
struct Rule<ops::taper_deformable_columns> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& offset,
                    const TensorType<D>* mask, DimList<D> kernel_size, DimList<D> stride,
                    DimList<D> padding, DimList<D> dilation, TensorType<D>& out) {
    if (!facts.require(input.rank == 4 && offset.rank == 4,
                       TAPER_TEXT("input and offset need 4 dimensions, got {} and {}"),
                       D(input.rank), D(offset.rank)) ||
        !facts.require(is_floating(input.dtype) && offset.dtype == input.dtype,
                       TAPER_TEXT("input and offset need one floating dtype")) ||
        !facts.require(kernel_size.size() == 2 && stride.size() == 2 && padding.size() == 2 &&
                           dilation.size() == 2,
                       TAPER_TEXT("kernel_size, stride, padding and dilation need 2 elements")) ||
        !facts.equal(input[0], offset[0], TAPER_TEXT("a batch of {} images and of {} offsets")) ||
        !has_groups(facts, input, offset, kernel_size[0], kernel_size[1]))
      return false;
    for (int i = 0; i < 2; ++i)
      if (!has_positions(facts, input[i + 2], offset[i + 2], kernel_size[i], stride[i], padding[i],
                         dilation[i]))
        return false;
    if (mask != nullptr && !fits(facts, *mask, offset)) return false;
    out.dtype = input.dtype, out.rank = 3;
    out[0] = input[0], out[1] = input[1] * (kernel_size[0] * kernel_size[1]);
    out[2] = offset[2] * offset[3];
    return true;
  }

 private:
  /// Whether the offsets belong to whole taps, and to a number of groups that divides the channels.
  template <class D>
  static bool has_groups(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& offset,
                         D down, D right) {
    if (!facts.at_least(down, D(1), TAPER_TEXT("the kernel's extent is {}, below {}")) ||
        !facts.at_least(right, D(1), TAPER_TEXT("the kernel's extent is {}, below {}")))
      return false;
    const D of_group = D(2) * (down * right), groups = offset[1] / of_group;
    return facts.equal(offset[1] % of_group, D(0),
                       TAPER_TEXT("offset's channels are not a multiple of twice the kernel's "
                                  "elements ({} remain, not {})")) &&
           facts.at_least(groups, D(1), TAPER_TEXT("offset has {} groups, below {}")) &&
           facts.equal(input[1] % groups, D(0),
                       TAPER_TEXT("input's channels are not a multiple of the groups of offset ({} "
                                  "remain, not {})"));
  }
  template <class D>
  static bool has_positions(Facts<D>& facts, D in, D positions, D kernel, D stride, D padding,
                            D dilation) {
    D out;
    return facts.at_least(stride, D(1), TAPER_TEXT("stride is {}, below {}")) &&
           facts.at_least(padding, D(0), TAPER_TEXT("padding is {}, below {}")) &&
           facts.at_least(dilation, D(1), TAPER_TEXT("dilation is {}, below {}")) &&
           internal::convolved_extent(facts, in, kernel, stride, padding, dilation, out) &&
           facts.equal(positions, out, TAPER_TEXT("offset has extent {}, the result {}"));
  }
  template <class D>
  static bool fits(Facts<D>& facts, const TensorType<D>& mask, const TensorType<D>& offset) {
    if (!facts.require(mask.rank == 4 && mask.dtype == offset.dtype,
                       TAPER_TEXT("mask needs 4 dimensions and the dtype of offset")) ||
        !facts.equal(mask[1] * D(2), offset[1],
                     TAPER_TEXT("twice mask's channels are {}, offset has {}")))
      return false;
    for (const int i : {0, 2, 3})
      if (!facts.equal(mask[i], offset[i], TAPER_TEXT("mask has extent {} where offset has {}")))
        return false;
    return true;
  }
};

}  // namespace taper
