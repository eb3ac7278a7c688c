// Sorting, searching, counting, and the different elements of a tensor. NaN is the largest element,
// and equal elements keep their order. Positions are i64. `dim` may be negative; a dim that self
// does not have is an error.
#pragma once
#include <optional>
#include <string_view>
#include <tuple>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

// ---- sorting ----

/// (values, i64 indices): the elements along dim in ascending order (or descending), and where they
/// were.
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim = -1,
                                       bool descending = false,
                                       Location here = Location::current()) {
  return call<ops::sort>(here, self, dim, descending);
}
/// The indices of `sort`.
inline Tensor argsort(const Tensor& self, int64_t dim = -1, bool descending = false,
                      Location here = Location::current()) {
  return call<ops::argsort>(here, self, dim, descending);
}
/// The values of `sort` along the first dimension.
inline Tensor msort(const Tensor& self, Location here = Location::current()) {
  return call<ops::msort>(here, self);
}
/// (values, i64 indices): the k largest (or smallest) elements along dim, in order, and where they
/// were. k larger than the extent is an error.
inline std::tuple<Tensor, Tensor> topk(const Tensor& self, Dim k, int64_t dim = -1,
                                       bool largest = true, Location here = Location::current()) {
  return call<ops::topk>(here, self, k, dim, largest, true);
}

// ---- search and counts ----

/// The positions at which to insert the elements of self into sorted lines, so that the lines stay
/// sorted: the first such position, with `right` the last. The lines are (…, n) with self's other
/// sizes, or one line for all. i64, or i32 with `out_int32`.
inline Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool right = false,
                           bool out_int32 = false, Location here = Location::current()) {
  return call<ops::searchsorted_Tensor>(here, sorted_sequence, self, out_int32, right, std::nullopt,
                                        std::nullopt);
}
/// The same for one number, in one line.
inline Tensor searchsorted(const Tensor& sorted_sequence, Scalar self, bool right = false,
                           bool out_int32 = false, Location here = Location::current()) {
  return call<ops::searchsorted_Scalar>(here, sorted_sequence, self, out_int32, right, std::nullopt,
                                        std::nullopt);
}
/// `searchsorted` in the line `boundaries`, its arguments exchanged.
inline Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool right = false,
                        bool out_int32 = false, Location here = Location::current()) {
  return call<ops::bucketize_Tensor>(here, self, boundaries, out_int32, right);
}
/// The same for one number.
inline Tensor bucketize(Scalar self, const Tensor& boundaries, bool right = false,
                        bool out_int32 = false, Location here = Location::current()) {
  return call<ops::bucketize_Scalar>(here, self, boundaries, out_int32, right);
}
/// Whether each element is among the elements of `test_elements`, or with `invert` is not: bool, of
/// the sizes of elements.
inline Tensor isin(const Tensor& elements, const Tensor& test_elements, bool invert = false,
                   Location here = Location::current()) {
  return call<ops::isin_Tensor_Tensor>(here, elements, test_elements, false, invert);
}
/// Whether each element is the number.
inline Tensor isin(const Tensor& elements, Scalar test_element, bool invert = false,
                   Location here = Location::current()) {
  return call<ops::isin_Tensor_Scalar>(here, elements, test_element, false, invert);
}
/// Whether the number is among the elements: without dimensions.
inline Tensor isin(Scalar element, const Tensor& test_elements, bool invert = false,
                   Location here = Location::current()) {
  return call<ops::isin_Scalar_Tensor>(here, element, test_elements, false, invert);
}
/// How often each number from 0 on occurs in a vector of integers (i64); with `weights`, the sum of
/// their weights (f32, else f64). The size depends on data: the largest number + 1, and at least
/// minlength. Negative numbers are an error.
inline Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights = {},
                       Dim minlength = 0, Location here = Location::current()) {
  return call<ops::bincount>(here, self, weights, minlength);
}
/// How many elements lie in each of `bins` equal parts of [min, max]. If both are 0, the range of
/// the data is divided. self is floating. Elements outside, NaN and infinities do not count.
inline Tensor histc(const Tensor& self, int64_t bins = 100, Scalar min = 0, Scalar max = 0,
                    Location here = Location::current()) {
  return call<ops::histc>(here, self, bins, min, max);
}

// ---- different elements; how many there are depends on data: a symbol while tracing ----

/// (values, inverse, counts). values: the different elements as a vector, always in ascending
/// order. inverse (i64): for each element of self, its position in values. counts (i64): how often
/// each value occurs. A result that is not asked for is empty.
inline std::tuple<Tensor, Tensor, Tensor> unique(const Tensor& self, bool sorted = true,
                                                 bool return_inverse = false,
                                                 bool return_counts = false,
                                                 Location here = Location::current()) {
  return call<ops::_unique2>(here, self, sorted, return_inverse, return_counts);
}
/// The same of the slices along dim, with inverse and counts. Not while tracing.
inline std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim,
                                                     Location here = Location::current()) {
  return call<ops::unique_dim>(here, self, dim, true, true, true);
}
/// (values, inverse, counts): one element for each run of equal elements, the run of every element,
/// and the lengths of the runs. With `dim`: runs of equal slices.
inline std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self,
                                                             std::optional<int64_t> dim = {},
                                                             Location here = Location::current()) {
  return call<ops::unique_consecutive>(here, self, true, true, dim);
}

}  // namespace taper::eager
