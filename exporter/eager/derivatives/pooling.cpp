#include "taper/exporter/eager/ops/pooling.h"

#include <algorithm>

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/derivatives/shared.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {
namespace {

/// If taps have gaps, a window may lie in the padding only. Its index is -1, and its gradient is
/// dropped.
bool has_gaps(const Ints& dilation) {
  return std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d > 1; });
}
Tensor zero_in_padding(const Tensor& dy, const Tensor& indices) {
  return masked_fill(dy, lt(indices, Scalar(0)), Scalar(0));
}
Tensor inside(const Tensor& indices) { return clamp_min(indices, Scalar(0)); }

/// Adds each gradient at the place of its maximum, in planes of the last `n` dimensions.
Tensor to_maxima(const Tensor& dy, const Tensor& indices, const Dims& sizes, int n) {
  const Tensor zero = flatten(zeros(sizes, dy.dtype()), -n);
  return scatter_add(zero, -1, flatten(indices, -n), flatten(dy, -n)).reshape(sizes);
}

/// The shapes through which a gradient (…, d, h, w) of pooling (…, D, H, W) passes on its way back.
/// Each is seen as (batch, 1, two dimensions).
struct Split {
  Dims pooled;       ///< (…, d, h w)
  Dims deep;         ///< (…, D, h w)
  Dims deep_planes;  ///< (… D, h, w)
  Dims planes;       ///< (… D, H, W)

  Split(const Dims& in, const Dims& out) {
    const size_t n = in.size();
    Dim lead(1);
    for (size_t i = 0; i + 3 < n; ++i) lead *= in[i];
    pooled = {lead, Dim(1), out[n - 3], out[n - 2] * out[n - 1]};
    deep = {lead, Dim(1), in[n - 3], out[n - 2] * out[n - 1]};
    deep_planes = {lead * in[n - 3], Dim(1), out[n - 2], out[n - 1]};
    planes = {lead * in[n - 3], Dim(1), in[n - 2], in[n - 1]};
  }
};

}  // namespace

TAPER_DERIVATIVE(max_pool2d_with_indices, "self", "result1") {
  return {call<ops::max_pool2d_with_indices_backward>(
      dy, saved.tensor<"self">(), saved.integers<"kernel_size">(), saved.integers<"stride">(),
      saved.integers<"padding">(), saved.integers<"dilation">(), saved.boolean<"ceil_mode">(),
      saved.result(1))};
}

TAPER_DERIVATIVE(max_pool2d_with_indices_backward, "indices") {
  const Tensor indices = saved.tensor<"indices">();
  const bool gaps = has_gaps(saved.integers<"dilation">());
  const Tensor there = gaps ? inside(indices) : indices;
  const Tensor found = gather(flatten(dy, -2), -1, flatten(there, -2)).reshape(indices.sizes());
  return {gaps ? zero_in_padding(found, indices) : found, {}, {}};
}

TAPER_DERIVATIVE(max_pool3d_with_indices, "result1") {
  const Tensor indices = saved.result(1);
  if (!has_gaps(saved.integers<"dilation">()))
    return {to_maxima(dy, indices, saved.sizes<"self">(), 3)};
  return {to_maxima(zero_in_padding(dy, indices), inside(indices), saved.sizes<"self">(), 3)};
}

#define TAPER_MAXIMA_DERIVATIVE(op, n)                                 \
  TAPER_DERIVATIVE(op, "result1") {                                    \
    return {to_maxima(dy, saved.result(1), saved.sizes<"self">(), n)}; \
  }
TAPER_MAXIMA_DERIVATIVE(adaptive_max_pool1d, 1)
TAPER_MAXIMA_DERIVATIVE(adaptive_max_pool2d, 2)
TAPER_MAXIMA_DERIVATIVE(adaptive_max_pool3d, 3)

TAPER_DERIVATIVE(fractional_max_pool2d, "result1") {
  return {to_maxima(dy, saved.result(1), saved.sizes<"self">(), 2), {}};
}
TAPER_DERIVATIVE(fractional_max_pool3d, "result1") {
  return {to_maxima(dy, saved.result(1), saved.sizes<"self">(), 3), {}};
}

TAPER_DERIVATIVE(avg_pool2d, "self") {
  return {call<ops::avg_pool2d_backward>(
      dy, saved.tensor<"self">(), saved.integers<"kernel_size">(), saved.integers<"stride">(),
      saved.integers<"padding">(), saved.boolean<"ceil_mode">(),
      saved.boolean<"count_include_pad">(),
      saved.has<"divisor_override">() ? std::optional(saved.integer<"divisor_override">())
                                      : std::nullopt)};
}

TAPER_DERIVATIVE(avg_pool2d_backward) {
  return {call<ops::avg_pool2d>(dy, saved.integers<"kernel_size">(), saved.integers<"stride">(),
                                saved.integers<"padding">(), saved.boolean<"ceil_mode">(),
                                saved.boolean<"count_include_pad">(),
                                saved.has<"divisor_override">()
                                    ? std::optional(saved.integer<"divisor_override">())
                                    : std::nullopt),
          {}};
}

// Uses two dimensions, the first of extent 1.
TAPER_DERIVATIVE(avg_pool1d, "self") {
  const auto pair = [](const Ints& list, int64_t first) {
    return list.empty() ? Ints() : Ints{first, list[0]};
  };
  return {call<ops::avg_pool2d_backward>(
              dy.unsqueeze(-2), saved.tensor<"self">().unsqueeze(-2),
              pair(saved.integers<"kernel_size">(), 1), pair(saved.integers<"stride">(), 1),
              pair(saved.integers<"padding">(), 0), saved.boolean<"ceil_mode">(),
              saved.boolean<"count_include_pad">(), std::nullopt)
              .squeeze(-2)};
}

// Three dimensions take two steps, because a window is a product of smaller windows. The first step
// goes along the depth, with height and width as one extent that is not pooled. The second goes
// along height and width at every depth.

TAPER_DERIVATIVE(avg_pool3d) {
  const Dims in = saved.sizes<"self">();
  const Split s(in, dy.sizes());
  const auto three = [](const Ints& list) { return list.size() == 1 ? Ints(3, list[0]) : list; };
  const Ints kernel = three(saved.integers<"kernel_size">()),
             padding = three(saved.integers<"padding">());
  const Ints stride =
      saved.integers<"stride">().empty() ? kernel : three(saved.integers<"stride">());
  const bool has_divisor = saved.has<"divisor_override">();
  const auto step = [&](const Tensor& d, const Dims& shape, const Ints& k, const Ints& st,
                        const Ints& p, std::optional<int64_t> divisor) {
    return call<ops::avg_pool2d_backward>(d, stand_in_of(shape, dy.dtype()), k, st, p,
                                          saved.boolean<"ceil_mode">(),
                                          saved.boolean<"count_include_pad">(), divisor);
  };
  const Tensor deep =
      step(dy.reshape(s.pooled), s.deep, {kernel[0], 1}, {stride[0], 1}, {padding[0], 0},
           has_divisor ? std::optional(saved.integer<"divisor_override">()) : std::nullopt);
  return {step(deep.reshape(s.deep_planes), s.planes, {kernel[1], kernel[2]},
               {stride[1], stride[2]}, {padding[1], padding[2]},
               has_divisor ? std::optional<int64_t>(1) : std::nullopt)
              .reshape(in)};
}

TAPER_DERIVATIVE(_adaptive_avg_pool3d) {
  const Dims in = saved.sizes<"self">();
  const Split s(in, dy.sizes());
  const auto step = [&](const Tensor& d, const Dims& shape) {
    return call<ops::_adaptive_avg_pool2d_backward>(d, stand_in_of(shape, dy.dtype()));
  };
  return {step(step(dy.reshape(s.pooled), s.deep).reshape(s.deep_planes), s.planes).reshape(in)};
}

TAPER_DERIVATIVE(_adaptive_avg_pool2d, "self") {
  return {call<ops::_adaptive_avg_pool2d_backward>(dy, saved.tensor<"self">())};
}

TAPER_DERIVATIVE(_adaptive_avg_pool2d_backward) {
  const Dims pooled = saved.sizes<"grad_output">();
  return {call<ops::_adaptive_avg_pool2d>(dy, Dims{pooled[pooled.size() - 2], pooled.back()}), {}};
}

TAPER_DERIVATIVE(adaptive_avg_pool1d, "self") {
  return {call<ops::_adaptive_avg_pool2d_backward>(dy.unsqueeze(-2),
                                                   saved.tensor<"self">().unsqueeze(-2))
              .squeeze(-2)};
}

TAPER_DERIVATIVE(im2col) {
  const Dims sizes = saved.sizes<"self">();
  return {call<ops::col2im>(dy, Dims{sizes[sizes.size() - 2], sizes.back()},
                            saved.integers<"kernel_size">(), saved.integers<"dilation">(),
                            saved.integers<"padding">(), saved.integers<"stride">())};
}
TAPER_DERIVATIVE(col2im) {
  return {call<ops::im2col>(dy, saved.integers<"kernel_size">(), saved.integers<"dilation">(),
                            saved.integers<"padding">(), saved.integers<"stride">())};
}

}  // namespace taper::eager::derivatives
