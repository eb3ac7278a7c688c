// Elements picked and written by tensors of indices. Sorting and searching: sorting.h.
//
// Indices are i64 or i32 and begin at 0. Negative indices count from the end only where a line says
// so. An index outside its dimension is an error: of the call in eager, of `execute` in a program.
// Written values and results have the dtype of `self`. `dim` may be negative; a dim that self does
// not have is an error.
//
// The size of a result may depend on data. While tracing, such a size is a symbol. Its bounds
// follow from the sizes of the arguments, or from `CountBounds` (recorder.h). Memory is planned for
// the largest size.
#pragma once
#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/ops/sorting.h"

namespace taper::eager {

// ---- rows of a table ----

/// Rows of weight (words, features): indices (…) -> (…, features). `padding_idx`: this row gets no
/// gradient. `scale_grad_by_freq`: gradients are divided by how often their row occurs.
inline Tensor embedding(const Tensor& weight, const Tensor& indices, Dim padding_idx = -1,
                        bool scale_grad_by_freq = false, Location here = Location::current()) {
  return call<ops::embedding>(here, weight, indices, padding_idx, scale_grad_by_freq, false);
}
/// Sums (mode 0), means (1) or maxima (2) of the rows of weight (words, features) that each bag
/// names: (bags, features). Bag k is indices[offsets[k]] … indices[offsets[k + 1] - 1]. The last
/// bag ends at the last index; with `include_last_offset`, the last offset is its end.
/// `per_sample_weights`, of the shape of indices, multiply the rows of a sum.
inline Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                            int64_t mode = 0, const std::optional<Tensor>& per_sample_weights = {},
                            bool include_last_offset = false, Location here = Location::current()) {
  return std::get<0>(call<ops::embedding_bag>(here, weight, indices, offsets, false, mode, false,
                                              per_sample_weights, include_last_offset));
}
/// The same without the row `padding_idx`: it is left out and gets no gradient. `padding_idx` may
/// be negative.
inline Tensor embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                            int64_t mode, const std::optional<Tensor>& per_sample_weights,
                            bool include_last_offset, int64_t padding_idx,
                            Location here = Location::current()) {
  return std::get<0>(call<ops::embedding_bag_padding_idx>(here, weight, indices, offsets, false,
                                                          mode, false, per_sample_weights,
                                                          include_last_offset, padding_idx));
}

// ---- one index for each element: index has the rank of self ----

/// For dim 0: out[i][j]… = self[index[i][j]…][j]…; other dims likewise. The result has the sizes of
/// index. Except along dim, they must not be larger than those of self.
inline Tensor gather(const Tensor& self, int64_t dim, const Tensor& index,
                     Location here = Location::current()) {
  return call<ops::gather>(here, self, dim, index, false);
}
/// The elements at the positions `indices` along `dim`, such as argsort gives. The other sizes of
/// self and indices broadcast. Without `dim`, self is flattened first. Negative indices count from
/// the end.
inline Tensor take_along_dim(const Tensor& self, const Tensor& indices,
                             std::optional<int64_t> dim = {}, Location here = Location::current()) {
  return call<ops::take_along_dim>(here, self, indices, dim);
}
/// A copy of self with self[index[i][j]…][j]… = src[i][j]…. If several writes go to one place, the
/// last one wins. src is at least as large as index.
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      Location here = Location::current()) {
  return call<ops::scatter_src>(here, self, dim, index, src);
}
/// The same with one number everywhere.
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, Scalar value,
                      Location here = Location::current()) {
  return call<ops::scatter_value>(here, self, dim, index, value);
}
/// The same, but each write adds to the element or multiplies it: `reduce` is "add" or "multiply".
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce, Location here = Location::current()) {
  return call<ops::scatter_reduce>(here, self, dim, index, src, reduce);
}
/// The same with one number everywhere.
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, Scalar value,
                      std::string_view reduce, Location here = Location::current()) {
  return call<ops::scatter_value_reduce>(here, self, dim, index, value, reduce);
}
/// A copy of self with self[index[i][j]…][j]… += src[i][j]….
inline Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                          Location here = Location::current()) {
  return call<ops::scatter_add>(here, self, dim, index, src);
}
/// The same with another `reduce`: "sum", "prod", "mean", "amax" or "amin". Without `include_self`,
/// the old value of a place that an index names does not count.
inline Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index,
                             const Tensor& src, std::string_view reduce, bool include_self = true,
                             Location here = Location::current()) {
  return call<ops::scatter_reduce_two>(here, self, dim, index, src, reduce, include_self);
}

// ---- one index for each slice along `dim`: index is 1-dim ----

/// The slices of self that `index` names, in that order. The extent of dim becomes that of index.
inline Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index,
                           Location here = Location::current()) {
  return call<ops::index_select>(here, self, dim, index);
}
/// A copy of self, where slice i of source, times alpha, is added to slice index[i].
inline Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                        Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::index_add>(here, self, dim, index, source, alpha);
}
/// A copy of self, where slice i of source replaces slice index[i]. If several writes go to one
/// place, the last one wins.
inline Tensor index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                         Location here = Location::current()) {
  return call<ops::index_copy>(here, self, dim, index, source);
}
/// A copy of self with `value` in the slices `index`. Negative indices count from the end.
inline Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, Scalar value,
                         Location here = Location::current()) {
  return call<ops::index_fill_int_Scalar>(here, self, dim, index, value);
}
/// The same with a 0-dim tensor for `value`.
inline Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value,
                         Location here = Location::current()) {
  return call<ops::index_fill_int_Tensor>(here, self, dim, index, value);
}
/// A copy of self, where `reduce` ("prod", "mean", "amax" or "amin") combines slice index[i] with
/// slice i of source. Without `include_self`, the old value of a slice that an index names does not
/// count.
inline Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index,
                           const Tensor& source, std::string_view reduce, bool include_self = true,
                           Location here = Location::current()) {
  return call<ops::index_reduce>(here, self, dim, index, source, reduce, include_self);
}
/// Slice i along dim, repeats[i] times. Without `dim`, self is flattened first. `repeats` is 1-dim,
/// or one number for all. The new extent is the sum of `repeats`. It depends on data, unless
/// `output_size` gives it.
inline Tensor repeat_interleave(const Tensor& self, const Tensor& repeats,
                                std::optional<int64_t> dim = {},
                                std::optional<Dim> output_size = {},
                                Location here = Location::current()) {
  return call<ops::repeat_interleave_self_Tensor>(here, self, repeats, dim, output_size);
}

// ---- indices as in NumPy; negative ones count from the end ----

/// self[indices]: one index tensor for each of the first dimensions; they broadcast. An undefined
/// tensor stands for `:`. A bool mask stands for the positions where it is true, whose number
/// depends on data.
inline Tensor index(const Tensor& self, const std::vector<Tensor>& indices,
                    Location here = Location::current()) {
  return call<ops::index_Tensor>(here, self, indices);
}
/// A copy of self with self[indices] = values, or += values with `accumulate`. `values` broadcast.
/// Without `accumulate`, the last of several writes to one place wins.
inline Tensor index_put(const Tensor& self, const std::vector<Tensor>& indices,
                        const Tensor& values, bool accumulate = false,
                        Location here = Location::current()) {
  return call<ops::index_put>(here, self, indices, values, accumulate);
}
/// `index_put` in place.
inline Tensor& index_put_(Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
                          bool accumulate = false, Location here = Location::current()) {
  return call_in_place<ops::index_put>(here, self, indices, values, accumulate);
}
/// The elements at these positions of the flattened tensor. The result has the sizes of index.
inline Tensor take(const Tensor& self, const Tensor& index, Location here = Location::current()) {
  return call<ops::take>(here, self, index);
}
/// A copy of self with source[i] at position index[i] of the flattened tensor. With `accumulate`,
/// source[i] is added there. index is i64; source has its sizes.
inline Tensor put(const Tensor& self, const Tensor& index, const Tensor& source,
                  bool accumulate = false, Location here = Location::current()) {
  return call<ops::put>(here, self, index, source, accumulate);
}

// ---- masks: bool tensors that broadcast with self ----

/// The elements where `mask` is true, as a 1-dim tensor whose size depends on data.
inline Tensor masked_select(const Tensor& self, const Tensor& mask,
                            Location here = Location::current()) {
  return call<ops::masked_select>(here, self, mask);
}
/// A copy of self, where the elements of source, one after the other, replace those where `mask` is
/// true. An error if source has too few elements.
inline Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source,
                             Location here = Location::current()) {
  return call<ops::masked_scatter>(here, self, mask, source);
}
/// The positions of elements that are not zero: i64 (count, rank), in row-major order. The count
/// depends on data.
inline Tensor nonzero(const Tensor& self, Location here = Location::current()) {
  return call<ops::nonzero>(here, self);
}
/// The first `size` of these positions. If there are fewer, the rest is `fill_value`.
inline Tensor nonzero_static(const Tensor& self, Dim size, int64_t fill_value = -1,
                             Location here = Location::current()) {
  return call<ops::nonzero_static>(here, self, size, fill_value);
}
/// `nonzero` by NumPy's name.
inline Tensor argwhere(const Tensor& self, Location here = Location::current()) {
  return call<ops::argwhere>(here, self);
}
/// The columns of `nonzero`: for each dimension a 1-dim tensor (count) of positions, i64.
inline std::vector<Tensor> where(const Tensor& condition, Location here = Location::current()) {
  return call<ops::where>(here, condition);
}

}  // namespace taper::eager
