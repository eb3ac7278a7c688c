// Sorting, searching, counting, and unique elements. NaN counts as the largest element, and equal
// elements keep their order. Positions are i64. `dim` may be negative; a dim that self does not
// have is an error.
#pragma once
#include <optional>
#include <string_view>
#include <tuple>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

// ---- sorting ----

/// (values, indices): the elements along dim in ascending order, or descending, and their old
/// positions (i64).
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
/// (values, indices): the k largest elements along dim, or the smallest, in order, and their
/// positions (i64). k larger than the extent is an error.
inline std::tuple<Tensor, Tensor> topk(const Tensor& self, Dim k, int64_t dim = -1,
                                       bool largest = true, Location here = Location::current()) {
  return call<ops::topk>(here, self, k, dim, largest, true);
}

// ---- search and counts ----

/// The positions at which the elements of self can be inserted into sorted lines so that the lines
/// stay sorted: the first such position, or the last one with `right`. The lines are (…, n) with
/// self's other sizes, or one line for all. The result is i64, or i32 with `out_int32`.
inline Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool right = false,
                           bool out_int32 = false, Location here = Location::current()) {
  return call<ops::searchsorted_Tensor>(here, sorted_sequence, self, out_int32, right, std::nullopt,
                                        std::nullopt);
}
/// The same for one number and one line.
inline Tensor searchsorted(const Tensor& sorted_sequence, Scalar self, bool right = false,
                           bool out_int32 = false, Location here = Location::current()) {
  return call<ops::searchsorted_Scalar>(here, sorted_sequence, self, out_int32, right, std::nullopt,
                                        std::nullopt);
}
/// `searchsorted` in the line `boundaries`, with the arguments exchanged.
inline Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool right = false,
                        bool out_int32 = false, Location here = Location::current()) {
  return call<ops::bucketize_Tensor>(here, self, boundaries, out_int32, right);
}
/// The same for one number.
inline Tensor bucketize(Scalar self, const Tensor& boundaries, bool right = false,
                        bool out_int32 = false, Location here = Location::current()) {
  return call<ops::bucketize_Scalar>(here, self, boundaries, out_int32, right);
}
/// Whether each element is one of `test_elements`; with `invert`, whether it is none of them. The
/// result is bool, with the sizes of elements.
inline Tensor isin(const Tensor& elements, const Tensor& test_elements, bool invert = false,
                   Location here = Location::current()) {
  return call<ops::isin_Tensor_Tensor>(here, elements, test_elements, false, invert);
}
/// Whether each element equals the number.
inline Tensor isin(const Tensor& elements, Scalar test_element, bool invert = false,
                   Location here = Location::current()) {
  return call<ops::isin_Tensor_Scalar>(here, elements, test_element, false, invert);
}
/// Whether the number is among the elements: a 0-dim tensor.
inline Tensor isin(Scalar element, const Tensor& test_elements, bool invert = false,
                   Location here = Location::current()) {
  return call<ops::isin_Scalar_Tensor>(here, element, test_elements, false, invert);
}
/// How often each of the numbers 0, 1, … occurs in a vector of integers (i64). With `weights`: the
/// sum of their weights (f32 weights give f32, others f64). The size is the largest number + 1, at
/// least minlength, so it depends on data. Negative numbers are an error.
inline Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights = {},
                       Dim minlength = 0, Location here = Location::current()) {
  return call<ops::bincount>(here, self, weights, minlength);
}
/// How many elements lie in each of `bins` equal parts of [min, max]. If both are 0, the parts
/// divide the range of the data, which must be finite. self is floating. Elements outside, NaN and
/// infinities do not count.
inline Tensor histc(const Tensor& self, int64_t bins = 100, Scalar min = 0, Scalar max = 0,
                    Location here = Location::current()) {
  return call<ops::histc>(here, self, bins, min, max);
}
/// (counts, edges): how many elements lie in each of `bins` equal parts of the range, and the bins
/// + 1 edges. A bin has its lower edge; the last one has both. Without `range`, the range is that
/// of the data. With `weight`, sums of weights. With `density`, counts are divided by their sum and
/// by the width of the bin. All tensors have the dtype of self, which is floating.
inline std::tuple<Tensor, Tensor> histogram(const Tensor& self, int64_t bins = 100,
                                            const std::optional<std::vector<double>>& range = {},
                                            const std::optional<Tensor>& weight = {},
                                            bool density = false,
                                            Location here = Location::current()) {
  return call<ops::histogram_bin_ct>(here, self, bins, range, weight, density);
}
/// The same between ascending edges: (bins + 1).
inline std::tuple<Tensor, Tensor> histogram(const Tensor& self, const Tensor& bins,
                                            const std::optional<Tensor>& weight = {},
                                            bool density = false,
                                            Location here = Location::current()) {
  return call<ops::histogram_bins_tensor>(here, self, bins, weight, density);
}

// ---- unique elements; their number depends on data: a symbol while tracing ----

/// (values, inverse, counts). values: each different element once, always in ascending order.
/// inverse (i64): for each element of self, its position in values. counts (i64): how often each
/// value occurs. A result that you do not ask for is empty.
inline std::tuple<Tensor, Tensor, Tensor> unique(const Tensor& self, bool sorted = true,
                                                 bool return_inverse = false,
                                                 bool return_counts = false,
                                                 Location here = Location::current()) {
  return call<ops::_unique2>(here, self, sorted, return_inverse, return_counts);
}
/// The same for slices along dim, always with inverse and counts. Slices with a NaN differ from all
/// others.
inline std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim,
                                                     Location here = Location::current()) {
  return call<ops::unique_dim>(here, self, dim, true, true, true);
}
/// (values, inverse, counts). values: one element for each run of equal elements. inverse: for each
/// element, its run. counts: the lengths of the runs. With `dim`: runs of equal slices.
inline std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self,
                                                             std::optional<int64_t> dim = {},
                                                             Location here = Location::current()) {
  return call<ops::unique_consecutive>(here, self, true, true, dim);
}

}  // namespace taper::eager
