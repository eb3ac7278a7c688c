// Rules of operators that make tensors from numbers.
#pragma once
#include <cmath>

#include "taper/kernels/shapes/checks.h"

namespace taper {
namespace internal {

template <class D>
bool listed_sizes(Facts<D>& facts, const DimList<D>& size, TensorType<D>& out) {
  if (!has_possible_rank(facts, size)) return false;
  out.rank = static_cast<int>(size.size());
  for (int i = 0; i < out.rank; ++i) {
    out.sizes[i] = size[i];
    if (!facts.at_least(size[i], D(0), TAPER_TEXT("size {} is negative"))) return false;
  }
  return true;
}
/// Numbers of a sequence are computed in the dtype.
template <class D>
bool computes(Facts<D>& facts, DType dtype) {
  return takes_numbers(facts, dtype) &&
         facts.require(!is_storage(dtype),
                       TAPER_TEXT("makes no f8, u16, u32 and u64; make f32 or i64 and cast it"));
}
/// The dtype of a number if the call names none.
constexpr DType dtype_of(Scalar value) {
  return value.is_real ? DType::f32 : value.is_bool ? DType::boolean : DType::i64;
}

}  // namespace internal

template <>
struct Rule<ops::full> {
  template <class D>
  static bool shape(Facts<D>& facts, DimList<D> size, Scalar fill_value, Maybe<DType> dtype,
                    TensorType<D>& out) {
    out.dtype = dtype ? *dtype : internal::dtype_of(fill_value);
    return internal::takes_numbers(facts, out.dtype) && internal::listed_sizes(facts, size, out);
  }
};
template <>
struct Rule<ops::fill_Scalar> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Scalar, TensorType<D>& out) {
    out.like(self);
    return internal::takes_numbers(facts, self.dtype);
  }
};
template <>
struct Rule<ops::scalar_tensor> {
  template <class D>
  static bool shape(Facts<D>& facts, Scalar, Maybe<DType> dtype, TensorType<D>& out) {
    out.rank = 0, out.dtype = dtype ? *dtype : DType::f32;
    return internal::takes_numbers(facts, out.dtype);
  }
};
template <>
struct Rule<ops::empty_memory_format> {
  template <class D>
  static bool shape(Facts<D>& facts, DimList<D> size, Maybe<DType> dtype, TensorType<D>& out) {
    out.dtype = dtype ? *dtype : DType::f32;
    return internal::takes_numbers(facts, out.dtype) && internal::listed_sizes(facts, size, out);
  }
};
/// Results are dense here: the requested strides are not kept.
template <>
struct Rule<ops::empty_strided> {
  template <class D>
  static bool shape(Facts<D>& facts, DimList<D> size, DimList<D> stride, Maybe<DType> dtype,
                    TensorType<D>& out) {
    return facts.require(size.size() == stride.size(), TAPER_TEXT("{} sizes and {} strides"),
                         size.size(), stride.size()) &&
           Rule<ops::empty_memory_format>::shape(facts, size, dtype, out);
  }
};
template <>
struct Rule<ops::arange_start_step> {
  template <class D>
  static bool shape(Facts<D>& facts, Number<D> start, Number<D> end, Number<D> step,
                    Maybe<DType> dtype, TensorType<D>& out) {
    const bool real = start.is_real || end.is_real || step.is_real;
    out.dtype = dtype ? *dtype : real ? DType::f32 : DType::i64;
    out.rank = 1, out.sizes[0] = D(0);
    if (!internal::computes(facts, out.dtype)) return false;
    int64_t first = 0, last = 0, stride = 0;
    if (is_number(start.integer, first) && is_number(end.integer, last) &&
        is_number(step.integer, stride))
      return real ? of_reals(facts, start.is_real ? start.real : static_cast<double>(first),
                             end.is_real ? end.real : static_cast<double>(last),
                             step.is_real ? step.real : static_cast<double>(stride), out)
                  : of_integers(facts, first, last, stride, out);
    if (!facts.require(!real && is_number(step.integer, stride) && stride != 0,
                       TAPER_TEXT("of symbolic bounds must have integers, and a step that is a "
                                  "number other than 0")))
      return false;
    const D distance = stride > 0 ? end.integer - start.integer : start.integer - end.integer;
    const D by(stride > 0 ? stride : -stride);
    if (!facts.at_least(distance, D(0), TAPER_TEXT("step leads away from end"))) return false;
    out.sizes[0] = (distance + by - D(1)) / by;
    return true;
  }

 private:
  template <class D>
  static bool of_reals(Facts<D>& facts, double from, double to, double by, TensorType<D>& out) {
    if (!facts.require(by != 0, TAPER_TEXT("step must not be 0")) ||
        !facts.require(std::isfinite(from) && std::isfinite(to) && std::isfinite(by),
                       TAPER_TEXT("start, end and step must be finite")) ||
        !facts.require(from == to || (to > from) == (by > 0),
                       TAPER_TEXT("step leads away from end")))
      return false;
    const double count = std::ceil((to - from) / by);
    if (!facts.require(count < 9e18, TAPER_TEXT("more than 2^63 elements"))) return false;
    out.sizes[0] = D(static_cast<int64_t>(count));
    return true;
  }
  // exact also where a double would round
  template <class D>
  static bool of_integers(Facts<D>& facts, Extent from, Extent to, Extent by, TensorType<D>& out) {
    if (!facts.require(by.value != 0, TAPER_TEXT("step must not be 0")) ||
        !facts.require(from.value == to.value || (to.value > from.value) == (by.value > 0),
                       TAPER_TEXT("step leads away from end")))
      return false;
    const Extent distance = by.value > 0 ? to - from : from - to;
    const Extent stride = by.value > 0 ? by : Extent(0) - by;
    const Extent n = (distance + stride - 1) / stride;
    if (!facts.require(!n.invalid(), TAPER_TEXT("more than 2^63 elements"))) return false;
    out.sizes[0] = D(n.value);
    return true;
  }
};
template <>
struct Rule<ops::linspace> {
  template <class D>
  static bool shape(Facts<D>& facts, Scalar, Scalar, int64_t steps, Maybe<DType> dtype,
                    TensorType<D>& out) {
    out.dtype = dtype ? *dtype : DType::f32;
    out.rank = 1, out.sizes[0] = D(steps);
    return internal::computes(facts, out.dtype) &&
           facts.require(steps >= 0, TAPER_TEXT("steps {} is negative"), steps);
  }
};

}  // namespace taper
