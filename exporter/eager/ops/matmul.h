// Matrix products. All arguments and the result have one dtype: f32, f64, an integer, f16 or bf16.
// f16 and bf16 are computed in f32. A row of a result depends neither on the number of rows nor on
// threads (docs/numerics.md). Errors: ranks, inner sizes or dtypes that do not fit each
// other.
#pragma once
#include <concepts>
#include <optional>
#include <string_view>
#include <vector>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// (m, k) (k, n) -> (m, n), the product of two matrices.
inline Tensor mm(const Tensor& self, const Tensor& mat2, Location here = Location::current()) {
  return call<ops::mm>(here, self, mat2);
}
/// (batch, m, k) (batch, k, n) -> (batch, m, n), a product for each of a batch.
inline Tensor bmm(const Tensor& self, const Tensor& mat2, Location here = Location::current()) {
  return call<ops::bmm>(here, self, mat2);
}
/// beta self + alpha mat1 mat2, (m, k) (k, n); self broadcasts to (m, n). With beta 0 self's values
/// do not matter, not even NaN.
inline Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta = 1,
                    Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::addmm>(here, self, mat1, mat2, beta, alpha);
}
/// beta self + alpha batch1 batch2 for batches (b, m, k) (b, k, n) of matrices; self broadcasts.
inline Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                      Scalar beta = 1, Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::baddbmm>(here, self, batch1, batch2, beta, alpha);
}
/// (…, in) with weight (out, in) and bias (out) -> (…, out): input weight^T + bias.
inline Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                     Location here = Location::current()) {
  return call<ops::linear>(here, input, weight, bias);
}
/// The product of vectors, matrices or batches of matrices: (…, m, k) (…, k, n) -> (…, m, n).
/// Leading dimensions broadcast. A vector counts as a row on the left and as a column on the right;
/// the result does not have that dimension.
inline Tensor matmul(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::matmul>(here, self, other);
}
/// (m, k) (k) -> (m), a matrix times a vector.
inline Tensor mv(const Tensor& self, const Tensor& vec, Location here = Location::current()) {
  return call<ops::mv>(here, self, vec);
}
/// The products of groups, each with its own matrix: (m, k) (groups, k, n) -> (m, n). The rows of
/// group g end before offs[g] and follow those of group g - 1; rows behind the last group are zero.
/// `offs` (i32 or i64) may divide the columns of mat2 instead: (groups, m, k) (k, n) -> (m, n); or
/// it may divide k: (m, k) (k, n) -> (groups, m, n). Without `offs` two batches are multiplied, as
/// by `bmm`.
inline Tensor grouped_mm(const Tensor& self, const Tensor& mat2, const Tensor& offs = {},
                         Location here = Location::current()) {
  return call<ops::_grouped_mm>(here, self, mat2, offs, std::nullopt, std::nullopt);
}
/// (k) (k) -> (), the sum of products of two vectors.
inline Tensor dot(const Tensor& self, const Tensor& tensor, Location here = Location::current()) {
  return call<ops::dot>(here, self, tensor);
}
/// `dot` by its name for complex numbers.
inline Tensor vdot(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::vdot>(here, self, other);
}
/// Sums of products over the last dimension of both: (…, k) (*, k) -> (…, *).
inline Tensor inner(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::inner>(here, self, other);
}
/// beta self + alpha times the sum of all batch1 batch2, (b, m, k) (b, k, n); self broadcasts to
/// (m, n).
inline Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                     Scalar beta = 1, Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::addbmm>(here, self, batch1, batch2, beta, alpha);
}
/// beta self + alpha mat vec, (m, k) (k); self broadcasts to (m).
inline Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, Scalar beta = 1,
                    Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::addmv>(here, self, mat, vec, beta, alpha);
}
/// beta self + alpha outer(vec1, vec2), (m) (n); self broadcasts to (m, n).
inline Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, Scalar beta = 1,
                   Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::addr>(here, self, vec1, vec2, beta, alpha);
}
/// Kronecker's product: every element of self times the whole of other, in its place; sizes
/// multiply, from the last dimension on.
inline Tensor kron(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::kron>(here, self, other);
}
/// input1[…, i] weight[o, i, j] input2[…, j] + bias[o], summed over i and j -> (…, o).
inline Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                       const Tensor& bias = {}, Location here = Location::current()) {
  return call<ops::bilinear>(here, input1, input2, weight, bias);
}
/// The cross product of vectors of 3 along `dim`, which must have this extent; the other dimensions
/// broadcast.
inline Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim = -1,
                           Location here = Location::current()) {
  return call<ops::linalg_cross>(here, self, other, dim);
}
/// The same; without `dim`, along the first dimension with 3 elements.
inline Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim = {},
                    Location here = Location::current()) {
  return call<ops::cross>(here, self, other, dim);
}
/// Sums of products over the dimensions dims_self of self and dims_other of other, pair by pair of
/// one size: the other dimensions of self, then those of other.
inline Tensor tensordot(const Tensor& self, const Tensor& other, const Ints& dims_self,
                        const Ints& dims_other, Location here = Location::current()) {
  return call<ops::tensordot>(here, self, other, dims_self, dims_other);
}
/// The same over the last `dims` dimensions of self and the first of other. (A template, so that a
/// list of one number is not taken for a number.)
template <std::integral T>
Tensor tensordot(const Tensor& self, const Tensor& other, T dims,
                 Location here = Location::current()) {
  if (dims < 0) throw EagerError(here, "tensordot: dims must be 0 or more");
  Ints last, first;
  for (T i = 0; i < dims; ++i) last.push_back(i - dims), first.push_back(i);
  return tensordot(self, other, last, first, here);
}
/// The sum of products that `equation` describes: "bij,bjk->bik". Letters name dimensions. Letters
/// that the right side leaves out are summed. A letter that a term repeats takes the diagonal.
/// "..." stands for the other dimensions, which broadcast. Without "->" the result has the letters
/// that occur once, in alphabetical order. Operands are multiplied from the left, or as `path`
/// says: pairs of positions in the list of operands; each product goes to its end.
inline Tensor einsum(std::string_view equation, const std::vector<Tensor>& tensors,
                     const std::optional<Ints>& path = {}, Location here = Location::current()) {
  return call<ops::einsum>(here, equation, tensors, path);
}
/// (m) (n) -> (m, n), the product of each with each.
inline Tensor outer(const Tensor& self, const Tensor& vec2, Location here = Location::current()) {
  return call<ops::outer>(here, self, vec2);
}

}  // namespace taper::eager
