// Elements picked and written by tensors of indices; sorting. An index outside its dimension is an
// error of the call.
#pragma once
#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// Rows of weight (words, features): indices (…) -> (…, features). `padding_idx`: this row gets no
/// gradient.
inline Tensor embedding(const Tensor& weight, const Tensor& indices, Dim padding_idx = -1,
                        bool scale_grad_by_freq = false, Location here = Location::current()) {
  return call<ops::embedding>(here, weight, indices, padding_idx, scale_grad_by_freq, false);
}
/// out[i][j]… = self[index[i][j]…][j]… for dim 0, and so for other dims.
inline Tensor gather(const Tensor& self, int64_t dim, const Tensor& index,
                     Location here = Location::current()) {
  return call<ops::gather>(here, self, dim, index, false);
}
/// self with self[index[i][j]…][j]… = src[i][j]…; the last of several writes to one place wins.
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      Location here = Location::current()) {
  return call<ops::scatter_src>(here, self, dim, index, src);
}
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, Scalar value,
                      Location here = Location::current()) {
  return call<ops::scatter_value>(here, self, dim, index, value);
}
/// self with self[index[i][j]…][j]… += src[i][j]…
inline Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                          Location here = Location::current()) {
  return call<ops::scatter_add>(here, self, dim, index, src);
}
/// The same by `reduce`: "sum", "prod", "mean", "amax" or "amin". Without `include_self`, places
/// that an index names start anew.
inline Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index,
                             const Tensor& src, std::string_view reduce, bool include_self = true,
                             Location here = Location::current()) {
  return call<ops::scatter_reduce_two>(here, self, dim, index, src, reduce, include_self);
}
/// Slices of self along dim, in the order of the vector `index`.
inline Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index,
                           Location here = Location::current()) {
  return call<ops::index_select>(here, self, dim, index);
}
/// self with slice index[i] += alpha source's slice i, along dim.
inline Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                        Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::index_add>(here, self, dim, index, source, alpha);
}
/// self with slice index[i] = source's slice i, along dim.
inline Tensor index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                         Location here = Location::current()) {
  return call<ops::index_copy>(here, self, dim, index, source);
}
/// self with `value` in the slices `index` along dim.
inline Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, Scalar value,
                         Location here = Location::current()) {
  return call<ops::index_fill_int_Scalar>(here, self, dim, index, value);
}
/// self with slice index[i] and source's slice i made one by `reduce`: "prod", "mean", "amax" or
/// "amin". Without `include_self`, slices that an index names start anew.
inline Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index,
                           const Tensor& source, std::string_view reduce, bool include_self = true,
                           Location here = Location::current()) {
  return call<ops::index_reduce>(here, self, dim, index, source, reduce, include_self);
}
/// self, the elements where `mask` is true replaced by those of source, one after the other.
inline Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source,
                             Location here = Location::current()) {
  return call<ops::masked_scatter>(here, self, mask, source);
}
/// The elements where `mask` is true, as a vector. Its size depends on data: a symbol while
/// tracing.
inline Tensor masked_select(const Tensor& self, const Tensor& mask,
                            Location here = Location::current()) {
  return call<ops::masked_select>(here, self, mask);
}
/// The positions of elements that are not zero: i64 (count, rank), in row-major order. Not while
/// tracing.
inline Tensor argwhere(const Tensor& self, Location here = Location::current()) {
  return call<ops::argwhere>(here, self);
}
inline Tensor nonzero(const Tensor& self, Location here = Location::current()) {
  return call<ops::nonzero>(here, self);
}
/// The elements at positions in the flattened tensor, negative ones counted from the end.
inline Tensor take(const Tensor& self, const Tensor& index, Location here = Location::current()) {
  return call<ops::take>(here, self, index);
}
/// Slice i of self along dim (of the flattened tensor without it) repeats[i] times. While tracing,
/// `output_size`, the sum of `repeats`, must be given.
inline Tensor repeat_interleave(const Tensor& self, const Tensor& repeats,
                                std::optional<int64_t> dim = {},
                                std::optional<Dim> output_size = {},
                                Location here = Location::current()) {
  return call<ops::repeat_interleave_self_Tensor>(here, self, repeats, dim, output_size);
}
/// Where the elements of self would stand in lines of sorted values (or in one line for all), the
/// first place that keeps them sorted, with `right` the last.
inline Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool right = false,
                           bool out_int32 = false, Location here = Location::current()) {
  return call<ops::searchsorted_Tensor>(here, sorted_sequence, self, out_int32, right, std::nullopt,
                                        std::nullopt);
}
inline Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool right = false,
                        bool out_int32 = false, Location here = Location::current()) {
  return call<ops::bucketize_Tensor>(here, self, boundaries, out_int32, right);
}
/// Whether each element is among the elements of `test_elements`.
inline Tensor isin(const Tensor& elements, const Tensor& test_elements, bool invert = false,
                   Location here = Location::current()) {
  return call<ops::isin_Tensor_Tensor>(here, elements, test_elements, false, invert);
}
/// How often each number from 0 on occurs in a vector (or the sum of the weights there). Not while
/// tracing.
inline Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights = {},
                       Dim minlength = 0, Location here = Location::current()) {
  return call<ops::bincount>(here, self, weights, minlength);
}
/// How many elements fall into each of `bins` equal parts of [min, max]; of the range of the data
/// if both are 0.
inline Tensor histc(const Tensor& self, int64_t bins = 100, Scalar min = 0, Scalar max = 0,
                    Location here = Location::current()) {
  return call<ops::histc>(here, self, bins, min, max);
}
/// The different slices along dim in ascending order, where each slice of self is among them, and
/// how often each occurs. Not while tracing.
inline std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim,
                                                     Location here = Location::current()) {
  return call<ops::unique_dim>(here, self, dim, true, true, true);
}
/// Sums (mode 0), means (1) or maxima (2) of the rows of weight (words, features) that each bag
/// names: bag k is indices[offsets[k]] … indices[offsets[k + 1] - 1].
inline Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                            int64_t mode = 0, const std::optional<Tensor>& per_sample_weights = {},
                            bool include_last_offset = false, Location here = Location::current()) {
  return std::get<0>(call<ops::embedding_bag>(here, weight, indices, offsets, false, mode, false,
                                              per_sample_weights, include_last_offset));
}
/// self[indices], as NumPy's: index tensors broadcast together, an undefined one stands for `:`.
/// Negative ones count from the end.
/// A bool mask stands for the positions where it is true.
inline Tensor index(const Tensor& self, const std::vector<Tensor>& indices,
                    Location here = Location::current()) {
  return call<ops::index_Tensor>(here, self, indices);
}
/// self with self[indices] = values, or += values with `accumulate`.
inline Tensor index_put(const Tensor& self, const std::vector<Tensor>& indices,
                        const Tensor& values, bool accumulate = false,
                        Location here = Location::current()) {
  return call<ops::index_put>(here, self, indices, values, accumulate);
}
inline Tensor& index_put_(Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
                          bool accumulate = false, Location here = Location::current()) {
  return call_in_place<ops::index_put>(here, self, indices, values, accumulate);
}
/// The elements that `indices`, such as argsort gives, name along `dim`; both are expanded to each
/// other's other sizes. Without `dim`: of all elements as one line.
inline Tensor take_along_dim(const Tensor& self, const Tensor& indices,
                             std::optional<int64_t> dim = {}, Location here = Location::current()) {
  return call<ops::take_along_dim>(here, self, indices, dim);
}
/// The elements along dim in ascending order (or descending), and where they were. Equal ones keep
/// their order; NaN is the largest.
inline std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim = -1,
                                       bool descending = false,
                                       Location here = Location::current()) {
  return call<ops::sort>(here, self, dim, descending);
}
inline Tensor argsort(const Tensor& self, int64_t dim = -1, bool descending = false,
                      Location here = Location::current()) {
  return call<ops::argsort>(here, self, dim, descending);
}
/// The k largest (or smallest) elements along dim, in order, and where they were.
inline std::tuple<Tensor, Tensor> topk(const Tensor& self, Dim k, int64_t dim = -1,
                                       bool largest = true, Location here = Location::current()) {
  return call<ops::topk>(here, self, k, dim, largest, true);
}

/// Where true elements stand: for each dimension a vector of coordinates.
inline std::vector<Tensor> where(const Tensor& condition, Location here = Location::current()) {
  return call<ops::where>(here, condition);
}
/// A copy with source[i] at index[i], counted over all elements.
inline Tensor put(const Tensor& self, const Tensor& index, const Tensor& source,
                  bool accumulate = false, Location here = Location::current()) {
  return call<ops::put>(here, self, index, source, accumulate);
}
/// One element for each run of equal ones, the run that every element belongs to, and their
/// lengths; or of slices along `dim`.
inline std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self,
                                                             std::optional<int64_t> dim = {},
                                                             Location here = Location::current()) {
  return call<ops::unique_consecutive>(here, self, true, true, dim);
}

}  // namespace taper::eager
