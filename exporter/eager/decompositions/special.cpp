// Special functions that are another one under a second name, or with a number in place of a
// tensor.
#include "taper/exporter/eager/ops/special.h"

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/creation.h"

namespace taper::eager::decompositions {
namespace {

/// A number as a 0-dim tensor that leaves the dtype of `tensor` as it is, or f32 beside integers.
Tensor number_beside(const Tensor& tensor, Scalar s) {
  return scalar_tensor(s, is_floating(tensor.dtype()) ? tensor.dtype() : DType::f32);
}

}  // namespace

TAPER_DECOMPOSITION(special_gammainc) { return {igamma(a.tensor<"self">(), a.tensor<"other">())}; }
TAPER_DECOMPOSITION(special_gammaincc) {
  return {igammac(a.tensor<"self">(), a.tensor<"other">())};
}
TAPER_DECOMPOSITION(special_zeta_other_scalar) {
  const Tensor self = a.tensor<"self">();
  return {zeta(self, number_beside(self, a.scalar<"other">()))};
}
TAPER_DECOMPOSITION(special_zeta_self_scalar) {
  const Tensor other = a.tensor<"other">();
  return {zeta(number_beside(other, a.scalar<"self">()), other)};
}
TAPER_DECOMPOSITION(special_polygamma) { return {polygamma(a.integer<"n">(), a.tensor<"self">())}; }
TAPER_DECOMPOSITION(special_i0) { return {i0(a.tensor<"self">())}; }

}  // namespace taper::eager::decompositions
