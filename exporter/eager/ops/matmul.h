// Matrix products.
#pragma once
#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// (m, k) (k, n) -> (m, n)
inline Tensor mm(const Tensor& self, const Tensor& mat2, Location here = Location::current()) {
  return call<ops::mm>(here, self, mat2);
}
/// (batch, m, k) (batch, k, n) -> (batch, m, n)
inline Tensor bmm(const Tensor& self, const Tensor& mat2, Location here = Location::current()) {
  return call<ops::bmm>(here, self, mat2);
}
/// beta self + alpha mat1 mat2; self broadcasts. With beta 0 self's values do not matter, not even
/// NaN.
inline Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta = 1,
                    Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::addmm>(here, self, mat1, mat2, beta, alpha);
}
/// beta self + alpha batch1 batch2 for batches of matrices; self broadcasts.
inline Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                      Scalar beta = 1, Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::baddbmm>(here, self, batch1, batch2, beta, alpha);
}
/// (…, in) with weight (out, in) and bias (out) -> (…, out): input weight^T + bias.
inline Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                     Location here = Location::current()) {
  return call<ops::linear>(here, input, weight, bias);
}
/// The product of vectors, matrices or batches of matrices, whose leading dimensions broadcast: (…,
/// m, k) (…, k, n) -> (…, m, n). A vector counts as a row on the left and as a column on the right,
/// and that dimension does not appear in the result.
inline Tensor matmul(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::matmul>(here, self, other);
}
/// (m, k) (k) -> (m)
inline Tensor mv(const Tensor& self, const Tensor& vec, Location here = Location::current()) {
  return call<ops::mv>(here, self, vec);
}
/// The products of groups, each with its own matrix: (m, k) (groups, k, n) -> (m, n), where the
/// rows of group g lie before offs[g] and behind those of group g - 1; rows behind the last group
/// are zero. `offs` (i32 or i64) may divide the columns of mat2 instead, (groups, m, k) (k, n) ->
/// (m, n), or k, (m, k) (k, n) -> (groups, m, n). Without it two batches are multiplied, as by
/// `bmm`.
inline Tensor grouped_mm(const Tensor& self, const Tensor& mat2, const Tensor& offs = {},
                         Location here = Location::current()) {
  return call<ops::_grouped_mm>(here, self, mat2, offs, std::nullopt, std::nullopt);
}
/// (k) (k) -> ()
inline Tensor dot(const Tensor& self, const Tensor& tensor, Location here = Location::current()) {
  return call<ops::dot>(here, self, tensor);
}
inline Tensor vdot(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::vdot>(here, self, other);
}
/// Sums of products over the last dimension of both: (…, k) (*, k) -> (…, *).
inline Tensor inner(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::inner>(here, self, other);
}
/// beta self + alpha mat vec; self broadcasts.
inline Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, Scalar beta = 1,
                    Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::addmv>(here, self, mat, vec, beta, alpha);
}
/// beta self + alpha outer(vec1, vec2); self broadcasts.
inline Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, Scalar beta = 1,
                   Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::addr>(here, self, vec1, vec2, beta, alpha);
}
/// Every element of self times the whole of other, in its place: sizes multiply.
inline Tensor kron(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::kron>(here, self, other);
}
/// input1[…, i] weight[o, i, j] input2[…, j] + bias[o], summed over i and j -> (…, o).
inline Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                       const Tensor& bias = {}, Location here = Location::current()) {
  return call<ops::bilinear>(here, input1, input2, weight, bias);
}
/// The cross product of vectors of 3 along `dim`; the other dimensions broadcast.
inline Tensor cross(const Tensor& self, const Tensor& other, int64_t dim = -1,
                    Location here = Location::current()) {
  return call<ops::linalg_cross>(here, self, other, dim);
}
/// The sum of products that `equation` writes: "bij,bjk->bik". Letters name dimensions; those that
/// the right side leaves out are summed, one that a term repeats takes its diagonal, "..." stands
/// for the dimensions that are not named and broadcast. Without "->" the result has the letters
/// that occur once, in alphabetical order. Operands are multiplied from the left, or by `path`,
/// pairs of positions whose product goes to the end of the list.
inline Tensor einsum(std::string_view equation, const std::vector<Tensor>& tensors,
                     const std::optional<Ints>& path = {}, Location here = Location::current()) {
  return call<ops::einsum>(here, equation, tensors, path);
}
/// (m) (n) -> (m, n)
inline Tensor outer(const Tensor& self, const Tensor& vec2, Location here = Location::current()) {
  return call<ops::outer>(here, self, vec2);
}

}  // namespace taper::eager
