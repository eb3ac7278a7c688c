// Views: tensors that share the storage of their argument. Writing through one is seen by all.
#pragma once
#include <optional>
#include <vector>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// Other sizes over the same elements; one size may be -1. Copies if the strides allow no view;
/// `view` throws then.
inline Tensor reshape(const Tensor& self, const Dims& sizes, Location here = Location::current()) {
  return call<ops::reshape>(here, self, sizes);
}
inline Tensor view(const Tensor& self, const Dims& sizes, Location here = Location::current()) {
  return call<ops::view>(here, self, sizes);
}
/// Joins dimensions start_dim … end_dim.
inline Tensor flatten(const Tensor& self, int64_t start_dim = 0, int64_t end_dim = -1,
                      Location here = Location::current()) {
  return call<ops::flatten_using_ints>(here, self, start_dim, end_dim);
}
/// Cuts a dimension into several; one size may be -1.
inline Tensor unflatten(const Tensor& self, int64_t dim, const Dims& sizes,
                        Location here = Location::current()) {
  return call<ops::unflatten_int>(here, self, dim, sizes);
}
/// Dimension i of the result is dimension dims[i].
inline Tensor permute(const Tensor& self, const Ints& dims, Location here = Location::current()) {
  return call<ops::permute>(here, self, dims);
}
inline Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1,
                        Location here = Location::current()) {
  return call<ops::transpose_int>(here, self, dim0, dim1);
}
/// Of a matrix.
inline Tensor t(const Tensor& self, Location here = Location::current()) {
  return call<ops::t>(here, self);
}
/// The last two dimensions exchanged.
inline Tensor mT(const Tensor& self, Location here = Location::current()) {
  return call<ops::mT>(here, self);
}
inline Tensor movedim(const Tensor& self, int64_t source, int64_t destination,
                      Location here = Location::current()) {
  return call<ops::movedim_int>(here, self, source, destination);
}
/// Repeats dimensions of size 1, and new ones in front; -1 keeps a size.
inline Tensor expand(const Tensor& self, const Dims& sizes, Location here = Location::current()) {
  return call<ops::expand>(here, self, sizes, false);
}
inline Tensor expand_as(const Tensor& self, const Tensor& other,
                        Location here = Location::current()) {
  return call<ops::expand_as>(here, self, other);
}
/// Without dimensions of size 1, or without `dim` if it is one.
inline Tensor squeeze(const Tensor& self, Location here = Location::current()) {
  return call<ops::squeeze>(here, self);
}
inline Tensor squeeze(const Tensor& self, int64_t dim, Location here = Location::current()) {
  return call<ops::squeeze_dim>(here, self, dim);
}
inline Tensor squeeze(const Tensor& self, const Ints& dims, Location here = Location::current()) {
  return call<ops::squeeze_dims>(here, self, dims);
}
inline Tensor unsqueeze(const Tensor& self, int64_t dim, Location here = Location::current()) {
  return call<ops::unsqueeze>(here, self, dim);
}
/// Row `index` of `dim`.
inline Tensor select(const Tensor& self, int64_t dim, Dim index,
                     Location here = Location::current()) {
  return call<ops::select_int>(here, self, dim, index);
}
/// Elements [start, end) by `step` along `dim`; negative bounds count from the end.
inline Tensor slice(const Tensor& self, int64_t dim, std::optional<Dim> start = {},
                    std::optional<Dim> end = {}, Dim step = 1,
                    Location here = Location::current()) {
  return call<ops::slice_Tensor>(here, self, dim, start, end, step);
}
/// `length` elements from `start` on.
inline Tensor narrow(const Tensor& self, int64_t dim, Dim start, Dim length,
                     Location here = Location::current()) {
  return call<ops::narrow>(here, self, dim, start, length);
}
/// The diagonal of two dimensions, as the last dimension; `offset` > 0 above it.
inline Tensor diagonal(const Tensor& self, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1,
                       Location here = Location::current()) {
  return call<ops::diagonal>(here, self, offset, dim1, dim2);
}
/// Windows of `size` elements every `step`, as a new last dimension.
inline Tensor unfold(const Tensor& self, int64_t dim, int64_t size, int64_t step,
                     Location here = Location::current()) {
  return call<ops::unfold>(here, self, dim, size, step);
}
/// Sizes and strides over the storage, in elements. Throws if they reach outside.
inline Tensor as_strided(const Tensor& self, const Dims& size, const Dims& stride,
                         std::optional<Dim> storage_offset = {},
                         Location here = Location::current()) {
  return call<ops::as_strided>(here, self, size, stride, storage_offset);
}

/// `transpose` by NumPy's name.
inline Tensor swapaxes(const Tensor& self, int64_t axis0, int64_t axis1,
                       Location here = Location::current()) {
  return call<ops::swapaxes>(here, self, axis0, axis1);
}
/// All elements in one dimension. Copies if the strides allow no view.
inline Tensor ravel(const Tensor& self, Location here = Location::current()) {
  return call<ops::ravel>(here, self);
}
/// `reshape` to the sizes of other.
inline Tensor reshape_as(const Tensor& self, const Tensor& other,
                         Location here = Location::current()) {
  return call<ops::reshape_as>(here, self, other);
}
/// `expand` by NumPy's name.
inline Tensor broadcast_to(const Tensor& self, const Dims& size,
                           Location here = Location::current()) {
  return call<ops::broadcast_to>(here, self, size);
}
inline Tensor view_as(const Tensor& self, const Tensor& other,
                      Location here = Location::current()) {
  return call<ops::view_as>(here, self, other);
}

// In place: the handle `self` becomes one on the view. Other handles keep the old shape.
inline Tensor& unsqueeze_(Tensor& self, int64_t dim, Location here = Location::current()) {
  return call_in_place<ops::unsqueeze>(here, self, dim);
}
inline Tensor& squeeze_(Tensor& self, int64_t dim, Location here = Location::current()) {
  return call_in_place<ops::squeeze_dim>(here, self, dim);
}
inline Tensor& transpose_(Tensor& self, int64_t dim0, int64_t dim1,
                          Location here = Location::current()) {
  return call_in_place<ops::transpose_int>(here, self, dim0, dim1);
}
inline Tensor& t_(Tensor& self, Location here = Location::current()) {
  return call_in_place<ops::t>(here, self);
}
/// `self` becomes a handle on the same data, cut off from the tape.
inline Tensor& detach_(Tensor& self, Location here = Location::current()) {
  return self = call<ops::detach_>(here, self);
}
/// `self` becomes its first elements in row-major order, as `size`; zeros behind the last one.
inline Tensor& resize_(Tensor& self, const Dims& size, Location here = Location::current()) {
  return self = call<ops::resize_>(here, self, size);
}

/// Pieces of `split_size` along `dim`, the last may be smaller; or of the sizes given, which must
/// add up.
inline std::vector<Tensor> split(const Tensor& self, Dim split_size, int64_t dim = 0,
                                 Location here = Location::current()) {
  return call<ops::split_Tensor>(here, self, split_size, dim);
}
inline std::vector<Tensor> split(const Tensor& self, const Dims& sizes, int64_t dim = 0,
                                 Location here = Location::current()) {
  return call<ops::split_with_sizes>(here, self, sizes, dim);
}
/// At most `chunks` pieces of equal size, the last may be smaller.
inline std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim = 0,
                                 Location here = Location::current()) {
  return call<ops::chunk>(here, self, chunks, dim);
}
/// `sections` pieces along `dim`, the first ones larger by one where the size is no multiple; or
/// the pieces that end before each index (as in a slice, from the end if negative) and the rest.
inline std::vector<Tensor> tensor_split(const Tensor& self, Dim sections, int64_t dim = 0,
                                        Location here = Location::current()) {
  return call<ops::tensor_split_sections>(here, self, sections, dim);
}
inline std::vector<Tensor> tensor_split(const Tensor& self, const Dims& indices, int64_t dim = 0,
                                        Location here = Location::current()) {
  return call<ops::tensor_split_indices>(here, self, indices, dim);
}
/// Every row of `dim`.
inline std::vector<Tensor> unbind(const Tensor& self, int64_t dim = 0,
                                  Location here = Location::current()) {
  return call<ops::unbind_int>(here, self, dim);
}

/// With dimensions of size 1 in front of those of self, or (3) around and behind them, up to 1, 2
/// or 3.
inline Tensor atleast_1d(const Tensor& self, Location here = Location::current()) {
  return call<ops::atleast_1d>(here, self);
}
inline Tensor atleast_2d(const Tensor& self, Location here = Location::current()) {
  return call<ops::atleast_2d>(here, self);
}
inline Tensor atleast_3d(const Tensor& self, Location here = Location::current()) {
  return call<ops::atleast_3d>(here, self);
}
/// With each dimension of `source` moved to that of `destination`.
inline Tensor movedim(const Tensor& self, const Ints& source, const Ints& destination,
                      Location here = Location::current()) {
  return call<ops::movedim_intlist>(here, self, source, destination);
}
/// tensor_split along the second (of vectors the first), the first and the third dimension into
/// equal pieces.
inline std::vector<Tensor> hsplit(const Tensor& self, int64_t sections,
                                  Location here = Location::current()) {
  return call<ops::hsplit_int>(here, self, sections);
}
inline std::vector<Tensor> vsplit(const Tensor& self, int64_t sections,
                                  Location here = Location::current()) {
  return call<ops::vsplit_int>(here, self, sections);
}
inline std::vector<Tensor> dsplit(const Tensor& self, int64_t sections,
                                  Location here = Location::current()) {
  return call<ops::dsplit_int>(here, self, sections);
}

}  // namespace taper::eager
