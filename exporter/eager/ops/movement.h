// Copies, casts, joins, and new arrangements of elements. They take every dtype, and the result has
// the same dtype. Tensors that are joined are cast to a common dtype. `dim` may be negative.
// Errors: a dim that
// self does not have, sizes that do not fit each other.
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
/// `self` if it has the dtype, else a copy. A real number is rounded towards zero to an integer;
/// docs/numerics.md says what happens if the integer cannot hold it.
inline Tensor to(const Tensor& self, DType dtype, Location here = Location::current()) {
  return call<ops::to_dtype>(here, self, dtype, false);
}
/// `to` the dtype of other.
inline Tensor type_as(const Tensor& self, const Tensor& other,
                      Location here = Location::current()) {
  return call<ops::type_as>(here, self, other);
}
/// Joined along an existing dimension; all other sizes must be equal. Vectors without elements do
/// not count.
inline Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0,
                  Location here = Location::current()) {
  return call<ops::cat>(here, tensors, dim);
}
/// Joined along a new dimension; all sizes must be equal.
inline Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0,
                    Location here = Location::current()) {
  return call<ops::stack>(here, tensors, dim);
}
/// The whole tensor repeated along each dimension, and along new ones in front: sizes multiply.
inline Tensor repeat(const Tensor& self, const Dims& repeats, Location here = Location::current()) {
  return call<ops::repeat>(here, self, repeats);
}
/// `repeat` as NumPy has it: a short list counts from the last dimension.
inline Tensor tile(const Tensor& self, const Dims& dims, Location here = Location::current()) {
  return call<ops::tile>(here, self, dims);
}
/// Coordinates from vectors: result k repeats the k-th vector along all dimensions but k: (n₀),
/// (n₁), … -> (n₀, n₁, …) each. `indexing`: "ij", or "xy" with the first two
/// dimensions exchanged.
inline std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors,
                                    std::string_view indexing = "ij",
                                    Location here = Location::current()) {
  return call<ops::meshgrid_indexing>(here, tensors, indexing);
}
/// self with the elements that `as_strided` sees replaced by `src`.
inline Tensor as_strided_scatter(const Tensor& self, const Tensor& src, const Dims& size,
                                 const Dims& stride, std::optional<Dim> storage_offset = {},
                                 Location here = Location::current()) {
  return call<ops::as_strided_scatter>(here, self, src, size, stride, storage_offset);
}
/// Joined along the second dimension, of vectors the first.
inline Tensor hstack(const std::vector<Tensor>& tensors, Location here = Location::current()) {
  return call<ops::hstack>(here, tensors);
}
/// Joined along the first dimension; vectors are rows.
inline Tensor vstack(const std::vector<Tensor>& tensors, Location here = Location::current()) {
  return call<ops::vstack>(here, tensors);
}
/// Joined along the third dimension, as `atleast_3d` has it.
inline Tensor dstack(const std::vector<Tensor>& tensors, Location here = Location::current()) {
  return call<ops::dstack>(here, tensors);
}
/// Each slice along `dim`, repeated `repeats` times in its place. Without `dim`, self is flattened
/// first.
inline Tensor repeat_interleave(const Tensor& self, Dim repeats, std::optional<int64_t> dim = {},
                                Location here = Location::current()) {
  return call<ops::repeat_interleave_self_int>(here, self, repeats, dim, std::nullopt);
}
/// Turned `k` quarters from the first of `dims` towards the second.
inline Tensor rot90(const Tensor& self, int64_t k = 1, const Ints& dims = {0, 1},
                    Location here = Location::current()) {
  return call<ops::rot90>(here, self, k, dims);
}
/// Zeros with the last dimension of `self` on a diagonal of two new ones: (…, n) -> (…, n +
/// |offset|, n + |offset|).
inline Tensor diag_embed(const Tensor& self, int64_t offset = 0, int64_t dim1 = -2,
                         int64_t dim2 = -1, Location here = Location::current()) {
  return call<ops::diag_embed>(here, self, offset, dim1, dim2);
}
/// The differences of neighbours along `dim`, taken n times; the extent shrinks by n. Of bool:
/// whether neighbours differ. `prepend` and `append` are joined to the ends first.
inline Tensor diff(const Tensor& self, int64_t n = 1, int64_t dim = -1, const Tensor& prepend = {},
                   const Tensor& append = {}, Location here = Location::current()) {
  return call<ops::diff>(here, self, n, dim, prepend, append);
}
/// `self` with every element made `value`, a tensor without dimensions.
inline Tensor fill(const Tensor& self, const Tensor& value, Location here = Location::current()) {
  return call<ops::fill_Tensor>(here, self, value);
}
/// The order along `dims` reversed.
inline Tensor flip(const Tensor& self, const Ints& dims, Location here = Location::current()) {
  return call<ops::flip>(here, self, dims);
}
/// Elements moved by `shifts`. Elements that leave at the end come back in front. Without `dims`,
/// self is flattened first and gets its sizes back.
inline Tensor roll(const Tensor& self, const Dims& shifts, const Ints& dims = {},
                   Location here = Location::current()) {
  return call<ops::roll>(here, self, shifts, dims);
}
/// `value` put around self: pairs (before, after) from the last dimension on; negative ones crop.
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
/// `self` with the elements that `slice` sees replaced by `src`, of their sizes.
inline Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim = 0,
                            std::optional<Dim> start = {}, std::optional<Dim> end = {},
                            Dim step = 1, Location here = Location::current()) {
  return call<ops::slice_scatter>(here, self, src, dim, start, end, step);
}
/// The same for `select`.
inline Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, Dim index,
                             Location here = Location::current()) {
  return call<ops::select_scatter>(here, self, src, dim, index);
}
/// The same for `diagonal`.
inline Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset = 0,
                               int64_t dim1 = 0, int64_t dim2 = 1,
                               Location here = Location::current()) {
  return call<ops::diagonal_scatter>(here, self, src, offset, dim1, dim2);
}

/// The order along the first dimension reversed.
inline Tensor flipud(const Tensor& self, Location here = Location::current()) {
  return call<ops::flipud>(here, self);
}
/// The order along the second dimension reversed.
inline Tensor fliplr(const Tensor& self, Location here = Location::current()) {
  return call<ops::fliplr>(here, self);
}
/// Joined along the second dimension; vectors are columns.
inline Tensor column_stack(const std::vector<Tensor>& tensors,
                           Location here = Location::current()) {
  return call<ops::column_stack>(here, tensors);
}
/// For a vector: the matrix with the vector on a diagonal. For a matrix: that diagonal, as a copy.
inline Tensor diag(const Tensor& self, int64_t diagonal = 0, Location here = Location::current()) {
  return call<ops::diag>(here, self, diagonal);
}
/// The elements as one line on a diagonal of a matrix, zero elsewhere.
inline Tensor diagflat(const Tensor& self, int64_t offset = 0,
                       Location here = Location::current()) {
  return call<ops::diagflat>(here, self, offset);
}
/// The matrices on the diagonal of one, zero elsewhere; vectors are rows.
inline Tensor block_diag(const std::vector<Tensor>& tensors, Location here = Location::current()) {
  return call<ops::block_diag>(here, tensors);
}
/// All choices of an element of each vector, as rows: (n₀ n₁ …, number of vectors).
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
/// The inverse of a broadcast from `size`: repeated elements are summed. The result has the sizes
/// `size`.
inline Tensor sum_to_size(const Tensor& self, const Dims& size,
                          Location here = Location::current()) {
  return call<ops::sum_to_size>(here, self, size);
}
/// The powers 0 … N - 1 of each element, in a new last dimension; without N, as many as the extent.
inline Tensor linalg_vander(const Tensor& x, std::optional<Dim> N = {},
                            Location here = Location::current()) {
  return call<ops::linalg_vander>(here, x, N);
}
/// The same of a vector, from the largest power down unless `increasing`.
inline Tensor vander(const Tensor& x, std::optional<int64_t> N = {}, bool increasing = false,
                     Location here = Location::current()) {
  return call<ops::vander>(here, x, N, increasing);
}

}  // namespace taper::eager
