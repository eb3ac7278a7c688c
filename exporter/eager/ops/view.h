// Views: tensors that share the storage of their argument, of every dtype. All of them see a write
// through any of them. Sizes, strides and positions are in elements. `dim` may be negative. Errors:
// a dim that self does not have, sizes that do not fit those of self.
#pragma once
#include <optional>
#include <vector>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

// ---- other sizes over the same elements in row-major order ----

/// The same elements with other sizes. One size may be -1. Throws if the number of elements
/// differs, or if the strides do not allow a view.
inline Tensor view(const Tensor& self, const Dims& sizes, Location here = Location::current()) {
  return call<ops::view>(here, self, sizes);
}
/// `view` to the sizes of other.
inline Tensor view_as(const Tensor& self, const Tensor& other,
                      Location here = Location::current()) {
  return call<ops::view_as>(here, self, other);
}
/// `view`, or a copy if the strides do not allow a view.
inline Tensor reshape(const Tensor& self, const Dims& sizes, Location here = Location::current()) {
  return call<ops::reshape>(here, self, sizes);
}
/// `reshape` to the sizes of other.
inline Tensor reshape_as(const Tensor& self, const Tensor& other,
                         Location here = Location::current()) {
  return call<ops::reshape_as>(here, self, other);
}
/// All elements in one dimension. Copies if the strides allow no view.
inline Tensor ravel(const Tensor& self, Location here = Location::current()) {
  return call<ops::ravel>(here, self);
}
/// Joins dimensions start_dim … end_dim. Copies if the strides allow no view.
inline Tensor flatten(const Tensor& self, int64_t start_dim = 0, int64_t end_dim = -1,
                      Location here = Location::current()) {
  return call<ops::flatten_using_ints>(here, self, start_dim, end_dim);
}
/// One dimension, divided into several. The product of their sizes is its size; one of them may be
/// -1.
inline Tensor unflatten(const Tensor& self, int64_t dim, const Dims& sizes,
                        Location here = Location::current()) {
  return call<ops::unflatten_int>(here, self, dim, sizes);
}

// ---- another order of dimensions ----

/// Dimension i of the result is dimension dims[i].
inline Tensor permute(const Tensor& self, const Ints& dims, Location here = Location::current()) {
  return call<ops::permute>(here, self, dims);
}
/// self with two dimensions exchanged.
inline Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1,
                        Location here = Location::current()) {
  return call<ops::transpose_int>(here, self, dim0, dim1);
}
/// Another name of `transpose`, from NumPy.
inline Tensor swapaxes(const Tensor& self, int64_t axis0, int64_t axis1,
                       Location here = Location::current()) {
  return call<ops::swapaxes>(here, self, axis0, axis1);
}
/// The transpose of a matrix. A tensor of fewer dimensions stays as it is.
inline Tensor t(const Tensor& self, Location here = Location::current()) {
  return call<ops::t>(here, self);
}
/// self with the last two dimensions exchanged.
inline Tensor mT(const Tensor& self, Location here = Location::current()) {
  return call<ops::mT>(here, self);
}
/// All dimensions in reverse order: PyTorch's `self.T`.
inline Tensor numpy_T(const Tensor& self, Location here = Location::current()) {
  return call<ops::numpy_T>(here, self);
}
/// self with one dimension moved to another place.
inline Tensor movedim(const Tensor& self, int64_t source, int64_t destination,
                      Location here = Location::current()) {
  return call<ops::movedim_int>(here, self, source, destination);
}
/// self with dimension source[i] moved to place destination[i].
inline Tensor movedim(const Tensor& self, const Ints& source, const Ints& destination,
                      Location here = Location::current()) {
  return call<ops::movedim_intlist>(here, self, source, destination);
}

// ---- dimensions of size 1 ----

/// self without its dimensions of size 1.
inline Tensor squeeze(const Tensor& self, Location here = Location::current()) {
  return call<ops::squeeze>(here, self);
}
/// self without dimension `dim`, if its size is 1.
inline Tensor squeeze(const Tensor& self, int64_t dim, Location here = Location::current()) {
  return call<ops::squeeze_dim>(here, self, dim);
}
/// self without those of `dims` whose size is 1.
inline Tensor squeeze(const Tensor& self, const Ints& dims, Location here = Location::current()) {
  return call<ops::squeeze_dims>(here, self, dims);
}
/// self with a new dimension of size 1 at place `dim`.
inline Tensor unsqueeze(const Tensor& self, int64_t dim, Location here = Location::current()) {
  return call<ops::unsqueeze>(here, self, dim);
}
/// self with dimensions of size 1 repeated, and new ones in front; -1 keeps a size. No element is
/// copied.
inline Tensor expand(const Tensor& self, const Dims& sizes, Location here = Location::current()) {
  return call<ops::expand>(here, self, sizes, false);
}
/// `expand` to the sizes of other.
inline Tensor expand_as(const Tensor& self, const Tensor& other,
                        Location here = Location::current()) {
  return call<ops::expand_as>(here, self, other);
}
/// Another name of `expand`, from NumPy.
inline Tensor broadcast_to(const Tensor& self, const Dims& size,
                           Location here = Location::current()) {
  return call<ops::broadcast_to>(here, self, size);
}
/// The tensors, each expanded to the sizes that they all broadcast to.
inline std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors,
                                             Location here = Location::current()) {
  return call<ops::broadcast_tensors>(here, tensors);
}
/// self with at least one dimension: () becomes (1).
inline Tensor atleast_1d(const Tensor& self, Location here = Location::current()) {
  return call<ops::atleast_1d>(here, self);
}
/// self with at least two dimensions: (n) becomes (1, n).
inline Tensor atleast_2d(const Tensor& self, Location here = Location::current()) {
  return call<ops::atleast_2d>(here, self);
}
/// self with at least three dimensions: (n) becomes (1, n, 1), (m, n) becomes (m, n, 1).
inline Tensor atleast_3d(const Tensor& self, Location here = Location::current()) {
  return call<ops::atleast_3d>(here, self);
}
/// The same for each tensor.
inline std::vector<Tensor> atleast_1d(const std::vector<Tensor>& tensors,
                                      Location here = Location::current()) {
  return call<ops::atleast_1d_Sequence>(here, tensors);
}
/// The same for each tensor.
inline std::vector<Tensor> atleast_2d(const std::vector<Tensor>& tensors,
                                      Location here = Location::current()) {
  return call<ops::atleast_2d_Sequence>(here, tensors);
}
/// The same for each tensor.
inline std::vector<Tensor> atleast_3d(const std::vector<Tensor>& tensors,
                                      Location here = Location::current()) {
  return call<ops::atleast_3d_Sequence>(here, tensors);
}

// ---- parts ----

/// Slice `index` along `dim`, which is removed. A negative index counts from the end. An index
/// outside is an error.
inline Tensor select(const Tensor& self, int64_t dim, Dim index,
                     Location here = Location::current()) {
  return call<ops::select_int>(here, self, dim, index);
}
/// The elements [start, end) along `dim` in steps of `step` > 0. As in Python, negative bounds
/// count from the end, and bounds outside are moved inside.
inline Tensor slice(const Tensor& self, int64_t dim, std::optional<Dim> start = {},
                    std::optional<Dim> end = {}, Dim step = 1,
                    Location here = Location::current()) {
  return call<ops::slice_Tensor>(here, self, dim, start, end, step);
}
/// `length` elements from `start` on. A negative start counts from the end. The elements must lie
/// inside.
inline Tensor narrow(const Tensor& self, int64_t dim, Dim start, Dim length,
                     Location here = Location::current()) {
  return call<ops::narrow>(here, self, dim, start, length);
}
/// The same, where `start` is the integer in a 0-dim tensor. In a traced program, the value is read
/// and checked at run time.
inline Tensor narrow(const Tensor& self, int64_t dim, const Tensor& start, Dim length,
                     Location here = Location::current()) {
  return call<ops::narrow_Tensor>(here, self, dim, start, length);
}
/// A diagonal of dim1 and dim2, as the last dimension. It lies `offset` above the main one.
inline Tensor diagonal(const Tensor& self, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1,
                       Location here = Location::current()) {
  return call<ops::diagonal>(here, self, offset, dim1, dim2);
}
/// Windows of `size` elements, one every `step`, as a new last dimension. Dimension `dim` then
/// counts the windows.
inline Tensor unfold(const Tensor& self, int64_t dim, int64_t size, int64_t step,
                     Location here = Location::current()) {
  return call<ops::unfold>(here, self, dim, size, step);
}
/// The given sizes and strides over the storage of self, from `storage_offset` on (default: that of
/// self). Throws if they reach outside the storage.
inline Tensor as_strided(const Tensor& self, const Dims& size, const Dims& stride,
                         std::optional<Dim> storage_offset = {},
                         Location here = Location::current()) {
  return call<ops::as_strided>(here, self, size, stride, storage_offset);
}

// ---- all parts along a dimension ----

/// Pieces of `split_size` along `dim`; the last may be smaller.
inline std::vector<Tensor> split(const Tensor& self, Dim split_size, int64_t dim = 0,
                                 Location here = Location::current()) {
  return call<ops::split_Tensor>(here, self, split_size, dim);
}
/// Pieces of these sizes along `dim`. The sizes must add up to the extent.
inline std::vector<Tensor> split(const Tensor& self, const Dims& sizes, int64_t dim = 0,
                                 Location here = Location::current()) {
  return call<ops::split_with_sizes>(here, self, sizes, dim);
}
/// At most `chunks` pieces of equal size; the last one may be smaller.
inline std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim = 0,
                                 Location here = Location::current()) {
  return call<ops::chunk>(here, self, chunks, dim);
}
/// `sections` pieces along `dim`. If `sections` does not divide the extent, the first pieces are
/// larger by one.
inline std::vector<Tensor> tensor_split(const Tensor& self, Dim sections, int64_t dim = 0,
                                        Location here = Location::current()) {
  return call<ops::tensor_split_sections>(here, self, sections, dim);
}
/// Pieces that end before each index, and the rest. A negative index counts from the end, as in a
/// slice.
inline std::vector<Tensor> tensor_split(const Tensor& self, const Dims& indices, int64_t dim = 0,
                                        Location here = Location::current()) {
  return call<ops::tensor_split_indices>(here, self, indices, dim);
}
/// The same with an i64 tensor: the number of sections, or a vector of indices. In a traced
/// program, indices are read at run time. A number of sections cannot be traced: an error.
inline std::vector<Tensor> tensor_split(const Tensor& self,
                                        const Tensor& tensor_indices_or_sections, int64_t dim = 0,
                                        Location here = Location::current()) {
  return call<ops::tensor_split_tensor_indices_or_sections>(here, self, tensor_indices_or_sections,
                                                            dim);
}
/// `sections` equal pieces along the second dimension; of a vector, along the first.
inline std::vector<Tensor> hsplit(const Tensor& self, Dim sections,
                                  Location here = Location::current()) {
  return call<ops::hsplit_int>(here, self, sections.value());
}
/// `sections` equal pieces along the first dimension; self has two dimensions or more.
inline std::vector<Tensor> vsplit(const Tensor& self, Dim sections,
                                  Location here = Location::current()) {
  return call<ops::vsplit_int>(here, self, sections.value());
}
/// `sections` equal pieces along the third dimension.
inline std::vector<Tensor> dsplit(const Tensor& self, Dim sections,
                                  Location here = Location::current()) {
  return call<ops::dsplit_int>(here, self, sections.value());
}
/// The pieces of `hsplit` that end before each index, and the rest.
inline std::vector<Tensor> hsplit(const Tensor& self, const Ints& indices,
                                  Location here = Location::current()) {
  return call<ops::hsplit_array>(here, self, indices);
}
/// The pieces of `vsplit` that end before each index, and the rest.
inline std::vector<Tensor> vsplit(const Tensor& self, const Ints& indices,
                                  Location here = Location::current()) {
  return call<ops::vsplit_array>(here, self, indices);
}
/// The pieces of `dsplit` that end before each index, and the rest.
inline std::vector<Tensor> dsplit(const Tensor& self, const Ints& indices,
                                  Location here = Location::current()) {
  return call<ops::dsplit_array>(here, self, indices);
}
/// Every slice along `dim`, which is removed.
inline std::vector<Tensor> unbind(const Tensor& self, int64_t dim = 0,
                                  Location here = Location::current()) {
  return call<ops::unbind_int>(here, self, dim);
}

// ---- in place: the handle `self` now stands for the view. Other handles keep the old shape. ----

/// `unsqueeze` in place.
inline Tensor& unsqueeze_(Tensor& self, int64_t dim, Location here = Location::current()) {
  return call_in_place<ops::unsqueeze>(here, self, dim);
}
/// `squeeze` in place.
inline Tensor& squeeze_(Tensor& self, int64_t dim, Location here = Location::current()) {
  return call_in_place<ops::squeeze_dim>(here, self, dim);
}
/// `transpose` in place.
inline Tensor& transpose_(Tensor& self, int64_t dim0, int64_t dim1,
                          Location here = Location::current()) {
  return call_in_place<ops::transpose_int>(here, self, dim0, dim1);
}
/// `t` in place.
inline Tensor& t_(Tensor& self, Location here = Location::current()) {
  return call_in_place<ops::t>(here, self);
}
/// Cuts `self` off from the tape: it then holds the same data and records no gradient.
inline Tensor& detach_(Tensor& self, Location here = Location::current()) {
  return self = call<ops::detach_>(here, self);
}
/// Gives `self` the sizes `size` and its first elements in row-major order. New elements are zero.
inline Tensor& resize_(Tensor& self, const Dims& size, Location here = Location::current()) {
  return self = call<ops::resize_>(here, self, size);
}

}  // namespace taper::eager
