// Rules of static 8-bit operators: i8 in, i8 out, with scales and zero points as numbers.
#pragma once
#include "taper/kernels/shapes/broadcast.h"
#include "taper/kernels/shapes/channels_last.h"
#include "taper/kernels/shapes/matmul.h"
#include "taper/kernels/shapes/resampling.h"

namespace taper {
namespace internal {

/// Rows of a panel of i8 weights, and neighbours along the depth that lie together.
inline constexpr int byte_panel_rows = 16, byte_panel_depth = 4;

template <class D>
bool are_bytes(Facts<D>& facts, const TensorType<D>& t) {
  return facts.require(t.dtype == DType::i8, TAPER_TEXT("the tensors must be i8"));
}
/// Requires a scale above zero, and a zero point that is an i8.
template <class D>
bool is_quantization(Facts<D>& facts, double scale, int64_t zero_point) {
  // the comparisons are false for NaN
  return facts.require(scale > 0 && scale <= 3.4e38,
                       TAPER_TEXT("a scale must be above zero, and finite in f32")) &&
         facts.require(zero_point >= -128 && zero_point <= 127,
                       TAPER_TEXT("the zero point {} is no i8"), zero_point);
}
template <class D>
bool is_output(Facts<D>& facts, double scale, int64_t zero_point, Span<const int64_t> range) {
  return is_quantization(facts, scale, zero_point) &&
         facts.require(
             range.size() == 2 && -128 <= range[0] && range[0] <= range[1] && range[1] <= 127,
             TAPER_TEXT("range must be two numbers of i8, the lower one first"));
}

/// Requires `panels` panels of weights with `depth` elements for each output channel, and what
/// belongs to the channels.
template <class D>
bool are_byte_panels(Facts<D>& facts, const TensorType<D>& weight, const TensorType<D>& scales,
                     const TensorType<D>& offsets, const D& panels, const D& depth) {
  constexpr const char* text = TAPER_TEXT("the weight has {} panels or vectors, and needs {}");
  const D vectors = (depth + D(byte_panel_depth - 1)) / D(byte_panel_depth);
  return are_bytes(facts, weight) &&
         facts.require(weight.rank == 4, TAPER_TEXT("the weight needs 4 dimensions; got {}"),
                       D(weight.rank)) &&
         facts.equal(weight[0], panels, text) && facts.equal(weight[1], vectors, text) &&
         facts.equal(weight[2], D(byte_panel_rows), TAPER_TEXT("a panel has {} rows, not {}")) &&
         facts.equal(weight[3], D(byte_panel_depth),
                     TAPER_TEXT("a vector has {} places, not {}")) &&
         facts.require(scales.rank == 1 && scales.dtype == DType::f32,
                       TAPER_TEXT("weight_scales must be a vector of f32")) &&
         facts.require(offsets.rank == 2 && offsets.dtype == DType::i32,
                       TAPER_TEXT("offsets must be a matrix of i32")) &&
         facts.equal(offsets[0], D(2), TAPER_TEXT("offsets has {} rows, not {}")) &&
         facts.equal(offsets[1], scales[0], TAPER_TEXT("there are {} offsets for {} channels"));
}
template <class D>
D byte_panels(const D& channels) {
  return (channels + D(byte_panel_rows - 1)) / D(byte_panel_rows);
}

template <class D>
bool binary_of_bytes(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& other,
                     double self_scale, int64_t self_zero_point, double other_scale,
                     int64_t other_zero_point, double output_scale, int64_t output_zero_point,
                     Span<const int64_t> range, TensorType<D>& out) {
  out.dtype = DType::i8;
  return are_bytes(facts, self) && are_bytes(facts, other) &&
         is_quantization(facts, self_scale, self_zero_point) &&
         is_quantization(facts, other_scale, other_zero_point) &&
         is_output(facts, output_scale, output_zero_point, range) &&
         broadcast(facts, out, self, other);
}

}  // namespace internal

template <>
struct Rule<ops::taper_conv2d_q8> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& weight,
                    const TensorType<D>& weight_scales, const TensorType<D>& offsets,
                    Span<const int64_t> kernel_size, Span<const int64_t> stride,
                    Span<const int64_t> padding, Span<const int64_t> dilation, int64_t groups,
                    double input_scale, int64_t input_zero_point, double output_scale,
                    int64_t output_zero_point, Span<const int64_t> range, TensorType<D>& out) {
    using namespace internal;
    if (!are_bytes(facts, input) || !is_image(facts, input) ||
        !is_quantization(facts, input_scale, input_zero_point) ||
        !is_output(facts, output_scale, output_zero_point, range) ||
        !facts.require(weight_scales.rank == 1, TAPER_TEXT("weight_scales must be a vector")) ||
        !facts.require(groups >= 1, TAPER_TEXT("groups is {}, below 1"), groups))
      return false;
    const Span<const int64_t> lists[] = {kernel_size, stride, padding, dilation};
    for (const Span<const int64_t>& list : lists)
      for (index_t i = 0; i < 2; ++i) {
        const int64_t least = &list == &lists[2] ? 0 : 1;
        if (!facts.require(
                list.size() == 2 && list[i] >= least && list[i] < int64_t{1} << 30,
                TAPER_TEXT("kernel_size, stride, padding and dilation need two possible numbers")))
          return false;
      }
    const D of_group(groups), channels = weight_scales[0], inputs = input[3] / of_group,
                              outputs = channels / of_group;
    constexpr const char* text = TAPER_TEXT("groups must divide the channels: {} remain, not {}");
    if (!facts.equal(input[3] % of_group, D(0), text) ||
        !facts.equal(channels % of_group, D(0), text) ||
        !facts.at_least(inputs, D(1), TAPER_TEXT("a group has {} input channels, below {}")))
      return false;
    const bool is_depthwise = facts.is_one(inputs) && facts.is_one(outputs);
    const D panels = is_depthwise ? byte_panels(channels) : of_group * byte_panels(outputs);
    out.dtype = DType::i8, out.rank = 4, out[0] = input[0], out[3] = channels;
    D depth = inputs;
    for (int i = 0; i < 2; ++i) {
      depth = depth * D(kernel_size[i]);
      if (!convolved_extent(facts, input[i + 1], D(kernel_size[i]), D(stride[i]), D(padding[i]),
                            D(dilation[i]), out[i + 1]))
        return false;
    }
    return are_byte_panels(facts, weight, weight_scales, offsets, panels, depth);
  }
};

template <>
struct Rule<ops::taper_linear_q8> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& weight,
                    const TensorType<D>& weight_scales, const TensorType<D>& offsets,
                    double input_scale, int64_t input_zero_point, double output_scale,
                    int64_t output_zero_point, Span<const int64_t> range, TensorType<D>& out) {
    using namespace internal;
    if (!are_bytes(facts, input) ||
        !facts.require(input.rank > 0, TAPER_TEXT("input has no dimension")) ||
        !facts.require(weight_scales.rank == 1, TAPER_TEXT("weight_scales must be a vector")) ||
        !is_quantization(facts, input_scale, input_zero_point) ||
        !is_output(facts, output_scale, output_zero_point, range))
      return false;
    out.like(input);
    out[input.rank - 1] = weight_scales[0];
    return are_byte_panels(facts, weight, weight_scales, offsets, byte_panels(weight_scales[0]),
                           input[input.rank - 1]);
  }
};

template <>
struct Rule<ops::taper_add_q8> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& other,
                    double self_scale, int64_t self_zero_point, double other_scale,
                    int64_t other_zero_point, double output_scale, int64_t output_zero_point,
                    Span<const int64_t> range, TensorType<D>& out) {
    return internal::binary_of_bytes(facts, self, other, self_scale, self_zero_point, other_scale,
                                     other_zero_point, output_scale, output_zero_point, range, out);
  }
};
template <>
struct Rule<ops::taper_sub_q8> : Rule<ops::taper_add_q8> {};
template <>
struct Rule<ops::taper_mul_q8> : Rule<ops::taper_add_q8> {};

template <>
struct Rule<ops::taper_avg_pool2d_q8> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> kernel_size,
                    Span<const int64_t> stride, Span<const int64_t> padding, bool ceil_mode,
                    bool count_include_pad, Maybe<int64_t> divisor_override, double input_scale,
                    int64_t input_zero_point, double output_scale, int64_t output_zero_point,
                    Span<const int64_t> range, TensorType<D>& out) {
    TensorType<D> as_float;
    as_float.like(self, DType::f32);
    if (!internal::are_bytes(facts, self) ||
        !internal::is_quantization(facts, input_scale, input_zero_point) ||
        !internal::is_output(facts, output_scale, output_zero_point, range) ||
        !Rule<ops::taper_avg_pool2d>::shape(facts, as_float, kernel_size, stride, padding,
                                            ceil_mode, count_include_pad, divisor_override, out))
      return false;
    out.dtype = DType::i8;
    return true;
  }
};

template <>
struct Rule<ops::taper_upsample_bilinear2d_q8> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, DimList<D> output_size,
                    bool align_corners, Maybe<double> scales_h, Maybe<double> scales_w,
                    double input_scale, int64_t input_zero_point, double output_scale,
                    int64_t output_zero_point, Span<const int64_t> range, TensorType<D>& out) {
    using namespace internal;
    if (!are_bytes(facts, self) || !is_image(facts, self) ||
        !is_quantization(facts, input_scale, input_zero_point) ||
        !is_output(facts, output_scale, output_zero_point, range))
      return false;
    TensorType<D> resized;
    if (!Rule<ops::upsample_bilinear2d>::shape(facts, channels_first(self), output_size,
                                               align_corners, scales_h, scales_w, resized))
      return false;
    out = channels_last(resized);
    return true;
  }
};

template <>
struct Rule<ops::taper_softmax_q8> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& table,
                    int64_t dim, double output_scale, int64_t output_zero_point,
                    Span<const int64_t> range, TensorType<D>& out) {
    out.like(self);
    return internal::are_bytes(facts, self) && normalize_dim(facts, dim, self.rank) &&
           internal::is_output(facts, output_scale, output_zero_point, range) &&
           facts.require(table.rank == 1 && table.dtype == DType::i32,
                         TAPER_TEXT("the table must be a vector of i32")) &&
           facts.equal(table[0], D(256), TAPER_TEXT("the table has {} elements, not {}"));
  }
};

template <>
struct Rule<ops::taper_bmm_q8> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& mat2,
                    double self_scale, int64_t self_zero_point, double mat2_scale,
                    int64_t mat2_zero_point, double output_scale, int64_t output_zero_point,
                    Span<const int64_t> range, TensorType<D>& out) {
    using namespace internal;
    return are_bytes(facts, self) && are_bytes(facts, mat2) &&
           is_quantization(facts, self_scale, self_zero_point) &&
           is_quantization(facts, mat2_scale, mat2_zero_point) &&
           is_output(facts, output_scale, output_zero_point, range) &&
           product_of_batches(facts, self, mat2, out);
  }
};

template <>
struct Rule<ops::taper_lookup_q8> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& table,
                    TensorType<D>& out) {
    out.like(self);
    return internal::are_bytes(facts, self) && internal::are_bytes(facts, table) &&
           facts.require(table.rank == 1, TAPER_TEXT("the table must be a vector")) &&
           facts.equal(table[0], D(256), TAPER_TEXT("the table has {} elements, not {}"));
  }
};

}  // namespace taper
