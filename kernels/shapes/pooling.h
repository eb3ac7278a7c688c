// Rules of pooling: windows over the last 1, 2 or 3 dimensions of (channels, …) or (batch,
// channels, …).
#pragma once
#include "taper/kernels/rule.h"
#include "taper/kernels/shapes/checks.h"

namespace taper {

/// One dimension of a window: its size and its step, in elements.
struct Window {
  int64_t kernel, stride, padding, dilation;
};

/// Element i of an `int[n]` argument. A list of one element stands for all dimensions.
inline int64_t each(Span<const int64_t> list, int i) {
  return list.size() == 1 ? list[0] : list[i];
}

/// The windows of n dimensions. An empty `stride` means the kernel's size, an empty `dilation` 1.
/// `half_padded`: no window may lie in the padding as a whole.
template <int n, class D>
bool read_windows(Facts<D>& facts, Span<const int64_t> kernel_size, Span<const int64_t> stride,
                  Span<const int64_t> padding, Span<const int64_t> dilation, Window* windows,
                  bool half_padded = true) {
  const auto fits = [](Span<const int64_t> list) { return list.size() == 1 || list.size() == n; };
  if (!facts.require(fits(kernel_size),
                     TAPER_TEXT("kernel_size must have 1 or {} elements, it has {}"), n,
                     kernel_size.size()) ||
      !facts.require(stride.empty() || fits(stride),
                     TAPER_TEXT("stride must have 0, 1 or {} elements, it has {}"), n,
                     stride.size()) ||
      !facts.require(fits(padding), TAPER_TEXT("padding must have 1 or {} elements, it has {}"), n,
                     padding.size()) ||
      !facts.require(dilation.empty() || fits(dilation),
                     TAPER_TEXT("dilation must have 1 or {} elements, it has {}"), n,
                     dilation.size()))
    return false;
  // Far above any real window, and small enough that sums and products of two stay far from
  // overflow.
  constexpr int64_t limit = int64_t{1} << 30;
  for (int i = 0; i < n; ++i) {
    Window& w = windows[i];
    w.kernel = each(kernel_size, i);
    w.stride = stride.empty() ? w.kernel : each(stride, i);
    w.padding = each(padding, i);
    w.dilation = dilation.empty() ? 1 : each(dilation, i);
    if (!facts.require(w.kernel > 0 && w.kernel < limit,
                       TAPER_TEXT("kernel_size must lie in [1, 2^30), got {}"), w.kernel) ||
        !facts.require(w.stride > 0 && w.stride < limit,
                       TAPER_TEXT("stride must lie in [1, 2^30), got {}"), w.stride) ||
        !facts.require(w.dilation > 0 && w.dilation < limit,
                       TAPER_TEXT("dilation must lie in [1, 2^30), got {}"), w.dilation) ||
        !facts.require(w.padding >= 0 && w.padding < limit,
                       TAPER_TEXT("padding must lie in [0, 2^30), got {}"), w.padding) ||
        !facts.require(
            !half_padded || w.padding <= ((w.kernel - 1) * w.dilation + 1) / 2,
            TAPER_TEXT("padding {} is more than half of kernel_size {} with dilation {}"),
            w.padding, w.kernel, w.dilation))
      return false;
  }
  return true;
}

/// How many windows fit: floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1. With
/// `ceil_mode` the quotient is rounded up, but a last window that would start in the right padding
/// is dropped.
template <class D>
bool window_count(Facts<D>& facts, const D& in, const Window& w, bool ceil_mode, D& out) {
  const D reach = in + D(2 * w.padding - w.dilation * (w.kernel - 1) - 1);
  const D s(w.stride);
  out = ceil_mode ? facts.min((reach + D(w.stride - 1)) / s + D(1),
                              (in + D(w.padding + w.stride - 1)) / s)
                  : reach / s + D(1);
  return facts.at_least(
      out, D(1),
      TAPER_TEXT(
          "the window is larger than the padded input: {} of its positions fit, at least {} must"));
}

namespace internal {

/// Requires (channels, …) or (batch, channels, …) with n pooled dimensions. Only the batch may be
/// empty, and with `channels_may_be_empty` the channels.
template <int n, class D>
bool check_pooled(Facts<D>& facts, const TensorType<D>& self, bool channels_may_be_empty = false) {
  if (!facts.require(self.rank == n + 1 || self.rank == n + 2,
                     TAPER_TEXT("self must have {} or {} dimensions, it has {}"), n + 1, n + 2,
                     self.rank))
    return false;
  for (int i = self.rank - n - (channels_may_be_empty ? 0 : 1); i < self.rank; ++i)
    if (!facts.at_least(self[i], D(1),
                        channels_may_be_empty
                            ? TAPER_TEXT("self has an extent of {}; a plane must not be empty")
                            : TAPER_TEXT("self has an extent of {}; only the batch may be empty")))
      return false;
  return true;
}

template <int n, class D>
bool pooled_shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> kernel_size,
                  Span<const int64_t> stride, Span<const int64_t> padding,
                  Span<const int64_t> dilation, bool ceil_mode, TensorType<D>& out) {
  Window windows[n];
  if (!check_pooled<n>(facts, self) ||
      !read_windows<n>(facts, kernel_size, stride, padding, dilation, windows))
    return false;
  out.like(self);
  for (int i = 0; i < n; ++i)
    if (!window_count(facts, self[self.rank - n + i], windows[i], ceil_mode,
                      out.sizes[self.rank - n + i]))
      return false;
  return true;
}

template <int n>
struct AveragePoolRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> kernel_size,
                    Span<const int64_t> stride, Span<const int64_t> padding, bool ceil_mode, bool,
                    Maybe<int64_t> divisor_override, TensorType<D>& out) {
    return facts.require(!divisor_override || *divisor_override != 0,
                         TAPER_TEXT("divisor_override must not be 0")) &&
           pooled_shape<n>(facts, self, kernel_size, stride, padding, {}, ceil_mode, out);
  }
};

template <int n>
struct MaxPoolRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> kernel_size,
                    Span<const int64_t> stride, Span<const int64_t> padding,
                    Span<const int64_t> dilation, bool ceil_mode, TensorType<D>& out,
                    TensorType<D>& indices) {
    if (!pooled_shape<n>(facts, self, kernel_size, stride, padding, dilation, ceil_mode, out))
      return false;
    indices.like(out, DType::i64);
    return facts.require(self.dtype != DType::boolean,
                         TAPER_TEXT("self must be a number, not bool"));
  }
};

template <int n>
struct AdaptivePoolRule {
  template <class D, class List>
  static bool shape_of(Facts<D>& facts, const TensorType<D>& self, const List& output_size,
                       TensorType<D>& out, bool channels_may_be_empty) {
    if (!facts.require(output_size.size() == n,
                       TAPER_TEXT("output_size must have {} elements, it has {}"), n,
                       output_size.size()) ||
        !check_pooled<n>(facts, self, channels_may_be_empty))
      return false;
    out.like(self);
    for (int i = 0; i < n; ++i) {
      if (!facts.at_least(D(output_size[i]), D(0),
                          TAPER_TEXT("output_size must not be negative, got {}")))
        return false;
      out.sizes[self.rank - n + i] = output_size[i];
    }
    return has_countable_bytes(facts, out);
  }
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, DimList<D> output_size,
                    TensorType<D>& out) {
    return shape_of(facts, self, output_size, out, n < 3);  // as in PyTorch
  }
};

template <int n>
struct AdaptiveMaxPoolRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> output_size,
                    TensorType<D>& out, TensorType<D>& indices) {
    if (!AdaptivePoolRule<n>::shape_of(facts, self, output_size, out, false)) return false;
    indices.like(out, DType::i64);
    return facts.require(self.dtype != DType::boolean,
                         TAPER_TEXT("self must be a number, not bool"));
  }
};

}  // namespace internal

template <>
struct Rule<ops::avg_pool1d> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> kernel_size,
                    Span<const int64_t> stride, Span<const int64_t> padding, bool ceil_mode, bool,
                    TensorType<D>& out) {
    return internal::pooled_shape<1>(facts, self, kernel_size, stride, padding, {}, ceil_mode, out);
  }
};
template <>
struct Rule<ops::avg_pool2d> : internal::AveragePoolRule<2> {};
template <>
struct Rule<ops::avg_pool3d> : internal::AveragePoolRule<3> {};

template <>
struct Rule<ops::avg_pool2d_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_output, const TensorType<D>& self,
                    Span<const int64_t> kernel_size, Span<const int64_t> stride,
                    Span<const int64_t> padding, bool ceil_mode, bool count_include_pad,
                    Maybe<int64_t> divisor_override, TensorType<D>& out) {
    TensorType<D> pooled;
    if (!Rule<ops::avg_pool2d>::shape(facts, self, kernel_size, stride, padding, ceil_mode,
                                      count_include_pad, divisor_override, pooled) ||
        !internal::same_sizes(facts, grad_output, pooled,
                              TAPER_TEXT("grad_output has {} dimensions, the pooled self {}"),
                              TAPER_TEXT("grad_output has extent {} where the pooled self has {}")))
      return false;
    out.like(self);
    return facts.require(grad_output.dtype == self.dtype,
                         TAPER_TEXT("grad_output and self must have the same dtype"));
  }
};

template <>
struct Rule<ops::max_pool2d> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> kernel_size,
                    Span<const int64_t> stride, Span<const int64_t> padding,
                    Span<const int64_t> dilation, bool ceil_mode, TensorType<D>& out) {
    TensorType<D> indices;
    return internal::MaxPoolRule<2>::shape(facts, self, kernel_size, stride, padding, dilation,
                                           ceil_mode, out, indices);
  }
};
template <>
struct Rule<ops::max_pool2d_with_indices> : internal::MaxPoolRule<2> {};
template <>
struct Rule<ops::max_pool3d_with_indices> : internal::MaxPoolRule<3> {};

template <>
struct Rule<ops::max_pool2d_with_indices_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_output, const TensorType<D>& self,
                    Span<const int64_t> kernel_size, Span<const int64_t> stride,
                    Span<const int64_t> padding, Span<const int64_t> dilation, bool ceil_mode,
                    const TensorType<D>& indices, TensorType<D>& out) {
    TensorType<D> pooled;
    if (!internal::pooled_shape<2>(facts, self, kernel_size, stride, padding, dilation, ceil_mode,
                                   pooled) ||
        !internal::same_sizes(
            facts, grad_output, pooled,
            TAPER_TEXT("grad_output has {} dimensions, the pooled self {}"),
            TAPER_TEXT("grad_output has extent {} where the pooled self has {}")) ||
        !internal::same_sizes(facts, indices, pooled,
                              TAPER_TEXT("indices have {} dimensions, the pooled self {}"),
                              TAPER_TEXT("indices have extent {} where the pooled self has {}")))
      return false;
    out.like(self);
    return facts.require(grad_output.dtype == self.dtype,
                         TAPER_TEXT("grad_output and self must have the same dtype")) &&
           facts.require(indices.dtype == DType::i64, TAPER_TEXT("indices must be i64"));
  }
};

template <>
struct Rule<ops::adaptive_avg_pool1d> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> output_size,
                    TensorType<D>& out) {
    return internal::AdaptivePoolRule<1>::shape_of(facts, self, output_size, out, true);
  }
};
template <>
struct Rule<ops::_adaptive_avg_pool2d> : internal::AdaptivePoolRule<2> {};
template <>
struct Rule<ops::_adaptive_avg_pool3d> : internal::AdaptivePoolRule<3> {};

template <>
struct Rule<ops::adaptive_max_pool1d> : internal::AdaptiveMaxPoolRule<1> {};
template <>
struct Rule<ops::adaptive_max_pool2d> : internal::AdaptiveMaxPoolRule<2> {};
template <>
struct Rule<ops::adaptive_max_pool3d> : internal::AdaptiveMaxPoolRule<3> {};

namespace internal {

/// random_samples (batch, channels, n): numbers in [0, 1) for each pooled dimension.
template <int n>
struct FractionalMaxPoolRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> kernel_size,
                    Span<const int64_t> output_size, const TensorType<D>& random_samples,
                    TensorType<D>& out, TensorType<D>& indices) {
    Window windows[n];
    if (!read_windows<n>(facts, kernel_size, {}, Span<const int64_t>(&no_padding, 1), {},
                         windows) ||
        !AdaptivePoolRule<n>::shape_of(facts, self, output_size, out, false))
      return false;
    for (int i = 0; i < n; ++i)
      if (!facts.at_least(D(output_size[i]), D(1),
                          TAPER_TEXT("output_size must be positive, got {}")) ||
          !facts.at_least(self[self.rank - n + i], D(windows[i].kernel) + D(output_size[i]) - D(1),
                          TAPER_TEXT("self has extent {}, output_size and kernel_size need {}")))
        return false;
    indices.like(out, DType::i64);
    return facts.require(random_samples.rank == 3 && random_samples.dtype == self.dtype,
                         TAPER_TEXT("random_samples must have 3 dimensions and self's dtype")) &&
           facts.equal(random_samples[0], self.rank == n + 2 ? self[0] : D(1),
                       TAPER_TEXT("random_samples has batch {}, self {}")) &&
           facts.equal(random_samples[1], self[self.rank - n - 1],
                       TAPER_TEXT("random_samples has {} channels, self {}")) &&
           facts.equal(random_samples[2], D(n),
                       TAPER_TEXT("random_samples' last extent is {}, it must be {}"));
  }

 private:
  static constexpr int64_t no_padding = 0;
};

}  // namespace internal

template <>
struct Rule<ops::fractional_max_pool2d> : internal::FractionalMaxPoolRule<2> {};
template <>
struct Rule<ops::fractional_max_pool3d> : internal::FractionalMaxPoolRule<3> {};

template <>
struct Rule<ops::_adaptive_avg_pool2d_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_output, const TensorType<D>& self,
                    TensorType<D>& out) {
    if (!internal::check_pooled<2>(facts, self, true) ||
        !facts.require(grad_output.rank == self.rank,
                       TAPER_TEXT("grad_output has {} dimensions, self {}"), grad_output.rank,
                       self.rank))
      return false;
    for (int i = 0; i < self.rank - 2; ++i)
      if (!facts.equal(grad_output[i], self[i],
                       TAPER_TEXT("grad_output has extent {} where self has {}")))
        return false;
    out.like(self);
    return facts.require(grad_output.dtype == self.dtype,
                         TAPER_TEXT("grad_output and self must have the same dtype"));
  }
};

}  // namespace taper
