// Shape rules of convolution and its gradients, over 1 to 3 spatial dimensions.
#pragma once
#include "taper/kernels/rule.h"

namespace taper {
namespace internal {

/// Element i of a list, which has one element for all spatial dimensions or one for each.
template <class D>
D spatial(const DimList<D>& list, int i) {
  return list[list.size() == 1 ? 0 : i];
}

/// Requires a number below a limit that is far above any real one, and so small that sums and
/// products of two stay far from overflow.
template <class D>
bool is_small(Facts<D>& facts, D step) {
  return facts.less(step, D(int64_t{1} << 30),
                    TAPER_TEXT("stride, padding and dilation must be below 2^30, got {}"));
}

/// The extent of a convolution's result along one spatial dimension:
///   (in + 2 padding - dilation (kernel - 1) - 1) / stride + 1
template <class D>
bool convolved_extent(Facts<D>& facts, D in, D kernel, D stride, D padding, D dilation, D& out) {
  if (!is_small(facts, stride) || !is_small(facts, padding) || !is_small(facts, dilation))
    return false;
  const D reach = dilation * (kernel - D(1)) + D(1), padded = in + D(2) * padding;
  if (!facts.at_least(padded, reach, TAPER_TEXT("the padded input has extent {}, the kernel {}")))
    return false;
  out = (padded - reach) / stride + D(1);
  return true;
}

/// The same for a transposed convolution: (in - 1) stride - 2 padding + dilation (kernel - 1) +
/// output_padding + 1
template <class D>
bool transposed_extent(Facts<D>& facts, D in, D kernel, D stride, D padding, D dilation,
                       D output_padding, D& out) {
  if (!is_small(facts, stride) || !is_small(facts, padding) || !is_small(facts, dilation))
    return false;
  if (!facts.less(output_padding, facts.max(stride, dilation),
                  TAPER_TEXT("output_padding {} must be below stride or dilation ({})")))
    return false;
  out = (in - D(1)) * stride - D(2) * padding + dilation * (kernel - D(1)) + output_padding + D(1);
  return facts.at_least(out, D(1), TAPER_TEXT("the result's extent {} is below {}"));
}

/// input (batch, in, x…), weight (out, in/groups, k…), bias (out) -> (batch, out, y…). A transposed
/// convolution has weight (in, out/groups, k…).
template <class D>
bool convolution_shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& weight,
                       const DimList<D>& stride, const DimList<D>& padding,
                       const DimList<D>& dilation, bool transposed,
                       const DimList<D>& output_padding, D groups, TensorType<D>& out) {
  const int n = input.rank - 2;
  if (!facts.require(n >= 1 && n <= 3, TAPER_TEXT("input needs 3 to 5 dimensions, got {}"),
                     D(input.rank)))
    return false;
  if (!facts.require(weight.rank == input.rank, TAPER_TEXT("weight has {} dimensions, input {}"),
                     D(weight.rank), D(input.rank)))
    return false;
  if (!facts.require(input.dtype == weight.dtype && input.dtype != DType::boolean,
                     TAPER_TEXT("input and weight need one dtype of numbers")))
    return false;
  const DimList<D>* lists[] = {&stride, &padding, &dilation, &output_padding};
  for (const DimList<D>* list : lists)
    if (!facts.require(
            list->size() == 1 || list->size() == n,
            TAPER_TEXT(
                "stride, padding, dilation and output_padding need 1 or {} elements, got {}"),
            D(n), D(static_cast<int64_t>(list->size()))))
      return false;

  if (!facts.at_least(groups, D(1), TAPER_TEXT("groups is {}, below {}"))) return false;
  const D out_channels = transposed ? weight[1] * groups : weight[0];
  if (!facts.equal(input[1], transposed ? weight[0] : weight[1] * groups,
                   TAPER_TEXT("input has {} channels, weight takes {} (groups {})"), groups))
    return false;
  if (!facts.equal(
          weight[0] % groups, D(0),
          TAPER_TEXT("weight's first extent is not a multiple of groups ({} remain, not {})")))
    return false;

  out.dtype = input.dtype, out.rank = input.rank;
  out[0] = input[0], out[1] = out_channels;
  for (int i = 0; i < n; ++i) {
    const D kernel = weight[i + 2], s = spatial(stride, i), p = spatial(padding, i),
            d = spatial(dilation, i);
    if (!facts.at_least(kernel, D(1), TAPER_TEXT("the kernel's extent is {}, below {}")))
      return false;
    if (!facts.at_least(s, D(1), TAPER_TEXT("stride is {}, below {}"))) return false;
    if (!facts.at_least(p, D(0), TAPER_TEXT("padding is {}, below {}"))) return false;
    if (!facts.at_least(d, D(1), TAPER_TEXT("dilation is {}, below {}"))) return false;
    if (transposed) {
      const D extra = spatial(output_padding, i);
      if (!facts.at_least(extra, D(0), TAPER_TEXT("output_padding is {}, below {}"))) return false;
      if (!transposed_extent(facts, input[i + 2], kernel, s, p, d, extra, out[i + 2])) return false;
    } else {
      if (!convolved_extent(facts, input[i + 2], kernel, s, p, d, out[i + 2])) return false;
    }
  }
  return true;
}

}  // namespace internal

template <>
struct Rule<ops::convolution> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& weight,
                    const TensorType<D>* bias, DimList<D> stride, DimList<D> padding,
                    DimList<D> dilation, bool transposed, DimList<D> output_padding, D groups,
                    TensorType<D>& out) {
    if (!internal::convolution_shape(facts, input, weight, stride, padding, dilation, transposed,
                                     output_padding, groups, out))
      return false;
    if (bias == nullptr) return true;
    return facts.require(bias->rank == 1 && bias->dtype == input.dtype,
                         TAPER_TEXT("bias needs one dimension and input's dtype")) &&
           facts.equal((*bias)[0], out[1],
                       TAPER_TEXT("bias has {} elements, the result {} channels"));
  }
};

/// Results: the gradients of input, weight and bias. Those that `output_mask` leaves out are not
/// present.
template <>
struct Rule<ops::convolution_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_output, const TensorType<D>& input,
                    const TensorType<D>& weight, Maybe<DimList<D>>, DimList<D> stride,
                    DimList<D> padding, DimList<D> dilation, bool transposed,
                    DimList<D> output_padding, D groups, Span<const int64_t> output_mask,
                    TensorType<D>& grad_input, TensorType<D>& grad_weight,
                    TensorType<D>& grad_bias) {
    TensorType<D> out;
    if (!internal::convolution_shape(facts, input, weight, stride, padding, dilation, transposed,
                                     output_padding, groups, out))
      return false;
    if (!facts.require(output_mask.size() == 3, TAPER_TEXT("output_mask needs 3 elements, got {}"),
                       D(static_cast<int64_t>(output_mask.size()))))
      return false;
    if (!facts.require(grad_output.rank == out.rank && grad_output.dtype == out.dtype,
                       TAPER_TEXT("grad_output's rank or dtype is not the convolution's")))
      return false;
    for (int i = 0; i < out.rank; ++i)
      if (!facts.equal(grad_output[i], out[i],
                       TAPER_TEXT("grad_output has extent {} where the convolution has {}")))
        return false;
    grad_input.like(input), grad_weight.like(weight);
    grad_bias.dtype = out.dtype, grad_bias.rank = 1, grad_bias[0] = out[1];
    grad_input.present = output_mask[0] != 0, grad_weight.present = output_mask[1] != 0,
    grad_bias.present = output_mask[2] != 0;
    return true;
  }
};

}  // namespace taper
