// Matrix products. All arguments and the result have one dtype: f32, f64, an integer, f16 or bf16.
// f16 and bf16 are computed in f32. A row of a result depends neither on the number of rows nor on
// threads (docs/numerics.md). Errors: ranks, inner sizes or dtypes that do not fit each other.
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
/// (batch, m, k) (batch, k, n) -> (batch, m, n): one product for each element of a batch.
inline Tensor bmm(const Tensor& self, const Tensor& mat2, Location here = Location::current()) {
  return call<ops::bmm>(here, self, mat2);
}
/// beta self + alpha mat1 mat2: (m, k) (k, n) -> (m, n). self broadcasts to (m, n). With beta 0,
/// the values of self are not read, so NaN there does no harm.
inline Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta = 1,
                    Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::addmm>(here, self, mat1, mat2, beta, alpha);
}
/// beta self + alpha batch1 batch2 for batches (b, m, k) (b, k, n) of matrices; self broadcasts.
inline Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                      Scalar beta = 1, Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::baddbmm>(here, self, batch1, batch2, beta, alpha);
}
/// input weight^T + bias: (…, in) -> (…, out), with weight (out, in) and bias (out).
inline Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                     Location here = Location::current()) {
  return call<ops::linear>(here, input, weight, bias);
}
/// The product of vectors, matrices or batches of matrices: (…, m, k) (…, k, n) -> (…, m, n).
/// Leading dimensions broadcast. A vector is a row on the left and a column on the right, and the
/// result does not have that dimension.
inline Tensor matmul(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::matmul>(here, self, other);
}
/// (m, k) (k) -> (m), a matrix times a vector.
inline Tensor mv(const Tensor& self, const Tensor& vec, Location here = Location::current()) {
  return call<ops::mv>(here, self, vec);
}
/// Products of groups, each with its own matrix: (m, k) (groups, k, n) -> (m, n). Group g has the
/// rows from offs[g - 1] up to but without offs[g]; rows behind the last group become zero. `offs`
/// (i32 or i64) may also divide the columns of mat2: (groups, m, k) (k, n) -> (m, n). Or it divides
/// k: (m, k) (k, n) -> (groups, m, n). Without `offs`, two batches are multiplied, as by `bmm`.
inline Tensor grouped_mm(const Tensor& self, const Tensor& mat2, const Tensor& offs = {},
                         Location here = Location::current()) {
  return call<ops::_grouped_mm>(here, self, mat2, offs, std::nullopt, std::nullopt);
}
/// (k) (k) -> (): the sum of the products of two vectors.
inline Tensor dot(const Tensor& self, const Tensor& tensor, Location here = Location::current()) {
  return call<ops::dot>(here, self, tensor);
}
/// `dot`, of the conjugate of self.
inline Tensor vdot(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::vdot>(here, self, other);
}
/// Sums of products over the last dimension of both: (…, k) (*, k) -> (…, *).
inline Tensor inner(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::inner>(here, self, other);
}
/// beta self + alpha times the sum of all products batch1 batch2: (b, m, k) (b, k, n) -> (m, n).
/// self broadcasts to (m, n).
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
/// The Kronecker product: each element of self is replaced by that element times the whole of
/// other. The sizes multiply, from the last dimension on.
inline Tensor kron(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::kron>(here, self, other);
}
/// The sum over i and j of input1[…, i] weight[o, i, j] input2[…, j], plus bias[o]: (…, o).
inline Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                       const Tensor& bias = {}, Location here = Location::current()) {
  return call<ops::bilinear>(here, input1, input2, weight, bias);
}
/// The cross product of vectors of 3 elements along `dim`. The other dimensions broadcast.
inline Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim = -1,
                           Location here = Location::current()) {
  return call<ops::linalg_cross>(here, self, other, dim);
}
/// The same. Without `dim`: along the first dimension that has 3 elements.
inline Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim = {},
                    Location here = Location::current()) {
  return call<ops::cross>(here, self, other, dim);
}
/// The sum of products over pairs of dimensions: dims_self[i] of self with dims_other[i] of other,
/// which have one size. The result has the other dimensions of self, then those of other.
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
/// The sum of products that `equation` describes, such as "bij,bjk->bik". Letters name dimensions.
/// If the right side leaves out a letter, its dimension is summed. If a term repeats a letter, its
/// diagonal is taken. "..." stands for the other dimensions, which broadcast. Without "->", the
/// result has the letters that occur once, in alphabetical order. Operands are multiplied from the
/// left, or in the order of `path`: pairs of positions in the list of operands. The product of a
/// pair is added at the end of the list.
inline Tensor einsum(std::string_view equation, const std::vector<Tensor>& tensors,
                     const std::optional<Ints>& path = {}, Location here = Location::current()) {
  return call<ops::einsum>(here, equation, tensors, path);
}
/// (m) (n) -> (m, n): each element of self times each element of vec2.
inline Tensor outer(const Tensor& self, const Tensor& vec2, Location here = Location::current()) {
  return call<ops::outer>(here, self, vec2);
}

}  // namespace taper::eager
