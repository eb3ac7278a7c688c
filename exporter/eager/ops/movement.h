// Copies, casts, joins, and new arrangements of elements. They take every dtype, and the result has
// the same dtype. Tensors that are joined are cast to a common dtype. `dim` may be negative.
// Errors: a dim that self does not have, sizes that do not fit each other.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// A dense copy.
inline Tensor clone(const Tensor& self, Location here = Location::current()) {
  return call<ops::clone>(here, self);
}
/// `self` if it is dense, else a dense copy.
inline Tensor contiguous(const Tensor& self, Location here = Location::current()) {
  return call<ops::contiguous>(here, self);
}
/// `self` if it has the dtype, else a copy. A real number becomes an integer by rounding towards
/// zero. docs/numerics.md says what happens if the integer cannot hold it.
inline Tensor to(const Tensor& self, DType dtype, Location here = Location::current()) {
  return call<ops::to_dtype>(here, self, dtype, false);
}
/// `to` the dtype of other.
inline Tensor type_as(const Tensor& self, const Tensor& other,
                      Location here = Location::current()) {
  return call<ops::type_as>(here, self, other);
}
/// The tensors, joined along a dimension that they have. All other sizes must be equal. Vectors
/// without elements do not count.
inline Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0,
                  Location here = Location::current()) {
  return call<ops::cat>(here, tensors, dim);
}
/// The tensors, joined along a new dimension. All sizes must be equal.
inline Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0,
                    Location here = Location::current()) {
  return call<ops::stack>(here, tensors, dim);
}
/// The whole tensor, repeated repeats[d] times along each dimension. A longer list adds dimensions
/// in front.
inline Tensor repeat(const Tensor& self, const Dims& repeats, Location here = Location::current()) {
  return call<ops::repeat>(here, self, repeats);
}
/// `repeat` as NumPy defines it: a short list counts from the last dimension.
inline Tensor tile(const Tensor& self, const Dims& dims, Location here = Location::current()) {
  return call<ops::tile>(here, self, dims);
}
/// Grids of coordinates from vectors: (n₀), (n₁), … -> (n₀, n₁, …) each. Result k repeats vector k
/// along all dimensions but k. `indexing` is "ij", or "xy" to exchange the first two dimensions.
inline std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors,
                                    std::string_view indexing = "ij",
                                    Location here = Location::current()) {
  return call<ops::meshgrid_indexing>(here, tensors, indexing);
}
/// A copy of self, where `src` replaces the elements that `as_strided` would give.
inline Tensor as_strided_scatter(const Tensor& self, const Tensor& src, const Dims& size,
                                 const Dims& stride, std::optional<Dim> storage_offset = {},
                                 Location here = Location::current()) {
  return call<ops::as_strided_scatter>(here, self, src, size, stride, storage_offset);
}
/// The tensors, joined along the second dimension; vectors along the first.
inline Tensor hstack(const std::vector<Tensor>& tensors, Location here = Location::current()) {
  return call<ops::hstack>(here, tensors);
}
/// The tensors, joined along the first dimension; vectors are rows.
inline Tensor vstack(const std::vector<Tensor>& tensors, Location here = Location::current()) {
  return call<ops::vstack>(here, tensors);
}
/// The tensors, joined along the third dimension after `atleast_3d`.
inline Tensor dstack(const std::vector<Tensor>& tensors, Location here = Location::current()) {
  return call<ops::dstack>(here, tensors);
}
/// Each slice along `dim`, repeated `repeats` times in its place. Without `dim`, self is flattened
/// first.
inline Tensor repeat_interleave(const Tensor& self, Dim repeats, std::optional<int64_t> dim = {},
                                Location here = Location::current()) {
  return call<ops::repeat_interleave_self_int>(here, self, repeats, dim, std::nullopt);
}
/// `k` quarter turns from the first of `dims` towards the second.
inline Tensor rot90(const Tensor& self, int64_t k = 1, const Ints& dims = {0, 1},
                    Location here = Location::current()) {
  return call<ops::rot90>(here, self, k, dims);
}
/// The last dimension of `self` on a diagonal of two new dimensions, and zeros elsewhere: (…, n) ->
/// (…, n + |offset|, n + |offset|).
inline Tensor diag_embed(const Tensor& self, int64_t offset = 0, int64_t dim1 = -2,
                         int64_t dim2 = -1, Location here = Location::current()) {
  return call<ops::diag_embed>(here, self, offset, dim1, dim2);
}
/// The differences of neighbours along `dim`, n times; the extent shrinks by n. For bool: whether
/// neighbours differ. `prepend` and `append` are joined to the ends first.
inline Tensor diff(const Tensor& self, int64_t n = 1, int64_t dim = -1, const Tensor& prepend = {},
                   const Tensor& append = {}, Location here = Location::current()) {
  return call<ops::diff>(here, self, n, dim, prepend, append);
}
/// A tensor like self, with every element equal to `value`, a 0-dim tensor.
inline Tensor fill(const Tensor& self, const Tensor& value, Location here = Location::current()) {
  return call<ops::fill_Tensor>(here, self, value);
}
/// The elements in reverse order along `dims`.
inline Tensor flip(const Tensor& self, const Ints& dims, Location here = Location::current()) {
  return call<ops::flip>(here, self, dims);
}
/// The elements, moved by `shifts`. Elements that leave at the end come back in front. Without
/// `dims`, self is flattened first and gets its sizes back.
inline Tensor roll(const Tensor& self, const Dims& shifts, const Ints& dims = {},
                   Location here = Location::current()) {
  return call<ops::roll>(here, self, shifts, dims);
}
/// self with `value` around it. `pad` lists pairs (before, after), from the last dimension on.
/// Negative numbers crop.
inline Tensor constant_pad_nd(const Tensor& self, const Dims& pad, Scalar value = 0,
                              Location here = Location::current()) {
  return call<ops::constant_pad_nd>(here, self, pad, value);
}
/// The elements of each matrix (the last two dimensions) on and below a diagonal, zero elsewhere.
/// The diagonal lies `diagonal` above the main one.
inline Tensor tril(const Tensor& self, Dim diagonal = 0, Location here = Location::current()) {
  return call<ops::tril>(here, self, diagonal);
}
/// The same for the elements on and above the diagonal.
inline Tensor triu(const Tensor& self, Dim diagonal = 0, Location here = Location::current()) {
  return call<ops::triu>(here, self, diagonal);
}
/// A copy of self, where `src` replaces the elements that `slice` would give. `src` has their
/// sizes.
inline Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim = 0,
                            std::optional<Dim> start = {}, std::optional<Dim> end = {},
                            Dim step = 1, Location here = Location::current()) {
  return call<ops::slice_scatter>(here, self, src, dim, start, end, step);
}
/// The same with the elements that `select` would give.
inline Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, Dim index,
                             Location here = Location::current()) {
  return call<ops::select_scatter>(here, self, src, dim, index);
}
/// The same with the elements that `diagonal` would give.
inline Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset = 0,
                               int64_t dim1 = 0, int64_t dim2 = 1,
                               Location here = Location::current()) {
  return call<ops::diagonal_scatter>(here, self, src, offset, dim1, dim2);
}

/// The elements in reverse order along the first dimension.
inline Tensor flipud(const Tensor& self, Location here = Location::current()) {
  return call<ops::flipud>(here, self);
}
/// The elements in reverse order along the second dimension.
inline Tensor fliplr(const Tensor& self, Location here = Location::current()) {
  return call<ops::fliplr>(here, self);
}
/// The tensors, joined along the second dimension; vectors are columns.
inline Tensor column_stack(const std::vector<Tensor>& tensors,
                           Location here = Location::current()) {
  return call<ops::column_stack>(here, tensors);
}
/// For a vector: the matrix with the vector on a diagonal. For a matrix: that diagonal, as a copy.
inline Tensor diag(const Tensor& self, int64_t diagonal = 0, Location here = Location::current()) {
  return call<ops::diag>(here, self, diagonal);
}
/// A matrix with the elements of self, flattened, on a diagonal, and zeros elsewhere.
inline Tensor diagflat(const Tensor& self, int64_t offset = 0,
                       Location here = Location::current()) {
  return call<ops::diagflat>(here, self, offset);
}
/// A matrix with the matrices on its diagonal, and zeros elsewhere; vectors are rows.
inline Tensor block_diag(const std::vector<Tensor>& tensors, Location here = Location::current()) {
  return call<ops::block_diag>(here, tensors);
}
/// All combinations of one element of each vector, as rows: (n₀ n₁ …, number of vectors).
inline Tensor cartesian_prod(const std::vector<Tensor>& tensors,
                             Location here = Location::current()) {
  return call<ops::cartesian_prod>(here, tensors);
}
/// All choices of r elements of a vector, as rows: (choices, r).
inline Tensor combinations(const Tensor& self, int64_t r = 2, bool with_replacement = false,
                           Location here = Location::current()) {
  return call<ops::combinations>(here, self, r, with_replacement);
}
/// Tensors of different lengths (dimension 0) in one tensor: (longest, batch, …) or (batch,
/// longest, …). `padding_value` fills the end of the shorter ones; with `padding_side` "left",
/// their beginning.
inline Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first = false,
                           double padding_value = 0, std::string_view padding_side = "right",
                           Location here = Location::current()) {
  return call<ops::pad_sequence>(here, sequences, batch_first, padding_value, padding_side);
}
/// The inverse of a broadcast from `size`: the repeated elements are summed. The result has the
/// sizes `size`.
inline Tensor sum_to_size(const Tensor& self, const Dims& size,
                          Location here = Location::current()) {
  return call<ops::sum_to_size>(here, self, size);
}
/// The powers 0 … N - 1 of each element, in a new last dimension. Without N: as many as the extent
/// of the last dimension.
inline Tensor linalg_vander(const Tensor& x, std::optional<Dim> N = {},
                            Location here = Location::current()) {
  return call<ops::linalg_vander>(here, x, N);
}
/// The same of a vector, with the largest power first unless `increasing`.
inline Tensor vander(const Tensor& x, std::optional<int64_t> N = {}, bool increasing = false,
                     Location here = Location::current()) {
  return call<ops::vander>(here, x, N, increasing);
}

}  // namespace taper::eager
