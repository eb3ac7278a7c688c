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
/// (k) (k) -> ()
inline Tensor dot(const Tensor& self, const Tensor& tensor, Location here = Location::current()) {
  return call<ops::dot>(here, self, tensor);
}
/// (m) (n) -> (m, n)
inline Tensor outer(const Tensor& self, const Tensor& vec2, Location here = Location::current()) {
  return call<ops::outer>(here, self, vec2);
}

}  // namespace taper::eager
