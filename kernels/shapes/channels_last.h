// Rules of the operators over images whose channels lie last: (batch, height, width, channels).
#pragma once
#include "taper/kernels/shapes/convolution.h"
#include "taper/kernels/shapes/pointwise.h"
#include "taper/kernels/shapes/pooling.h"

namespace taper {
namespace internal {

/// The type of the same image with its channels before height and width.
template <class D>
TensorType<D> channels_first(const TensorType<D>& t) {
  TensorType<D> turned;
  turned.like(t);
  turned[1] = t[3], turned[2] = t[1], turned[3] = t[2];
  return turned;
}
template <class D>
TensorType<D> channels_last(const TensorType<D>& t) {
  TensorType<D> turned;
  turned.like(t);
  turned[1] = t[2], turned[2] = t[3], turned[3] = t[1];
  return turned;
}
template <class D>
bool is_image(Facts<D>& facts, const TensorType<D>& t) {
  return facts.require(t.rank == 4, TAPER_TEXT("needs 4 dimensions, channels last; got {}"),
                       D(t.rank));
}

}  // namespace internal

template <>
struct Rule<ops::taper_convolution> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& weight,
                    const TensorType<D>* bias, DimList<D> stride, DimList<D> padding,
                    DimList<D> dilation, D groups, TypeList<D> others, Span<const int64_t> program,
                    Span<const double> constants, TensorType<D>& out) {
    static constexpr int64_t zero = 0;
    const DimList<D> none{&zero, 1, [](const void*, index_t) { return D(zero); }};
    TensorType<D> turned;
    if (!internal::is_image(facts, input) ||
        !Rule<ops::convolution>::shape(facts, internal::channels_first(input), weight, bias, stride,
                                       padding, dilation, false, none, groups, turned))
      return false;
    out = internal::channels_last(turned);
    if (program.empty())
      return facts.require(others.count == 0 && constants.empty(),
                           TAPER_TEXT("without a program there are neither others nor constants"));
    if (!facts.require(out.dtype == DType::f32, TAPER_TEXT("a program needs f32")) ||
        !facts.require(is_valid_pointwise(program, others.count + 1, constants.size()),
                       TAPER_TEXT("the program is not valid")))
      return false;
    for (index_t i = 0; i < others.count; ++i) {
      const TensorType<D> other = others[i];
      if (!facts.require(other.dtype == DType::f32 && (other.rank == 0 || other.rank == out.rank),
                         TAPER_TEXT("others[{}] must be f32, with 4 dimensions or none"), D(i)))
        return false;
      for (int d = 0; d < other.rank; ++d)
        if (!facts.equal(other[d], out[d], TAPER_TEXT("sizes {} and {} of others differ")))
          return false;
    }
    return true;
  }
};

template <>
struct Rule<ops::taper_winograd_convolution> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& input, const TensorType<D>& weight,
                    const TensorType<D>* bias, DimList<D> padding, TypeList<D> others,
                    Span<const int64_t> program, Span<const double> constants, TensorType<D>& out) {
    static constexpr int64_t one = 1;
    const DimList<D> ones{&one, 1, [](const void*, index_t) { return D(one); }};
    return facts.require(weight.rank == 4, TAPER_TEXT("the weight needs 4 dimensions; got {}"),
                         D(weight.rank)) &&
           facts.equal(weight[2], D(3), TAPER_TEXT("a filter has {} rows, and must have {}")) &&
           facts.equal(weight[3], D(3), TAPER_TEXT("a filter has {} columns, and must have {}")) &&
           Rule<ops::taper_convolution>::shape(facts, input, weight, bias, ones, padding, ones,
                                               D(one), others, program, constants, out);
  }
};

template <>
struct Rule<ops::taper_max_pool2d> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> kernel_size,
                    Span<const int64_t> stride, Span<const int64_t> padding,
                    Span<const int64_t> dilation, bool ceil_mode, TensorType<D>& out) {
    TensorType<D> turned;
    if (!internal::is_image(facts, self) ||
        !facts.require(self.dtype != DType::boolean,
                       TAPER_TEXT("self must be a number, not bool")) ||
        !internal::pooled_shape<2>(facts, internal::channels_first(self), kernel_size, stride,
                                   padding, dilation, ceil_mode, turned))
      return false;
    out = internal::channels_last(turned);
    return true;
  }
};

template <>
struct Rule<ops::taper_avg_pool2d> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> kernel_size,
                    Span<const int64_t> stride, Span<const int64_t> padding, bool ceil_mode,
                    bool count_include_pad, Maybe<int64_t> divisor_override, TensorType<D>& out) {
    TensorType<D> turned;
    if (!internal::is_image(facts, self) ||
        !Rule<ops::avg_pool2d>::shape(facts, internal::channels_first(self), kernel_size, stride,
                                      padding, ceil_mode, count_include_pad, divisor_override,
                                      turned))
      return false;
    out = internal::channels_last(turned);
    return true;
  }
};

}  // namespace taper
