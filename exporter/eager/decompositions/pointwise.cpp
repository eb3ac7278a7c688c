// Composite pointwise operators.
#include "taper/exporter/eager/ops/pointwise.h"

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

/// A number as a 0-dim tensor of its own dtype, for operators that take tensors: promotion treats
/// both alike.
Tensor as_tensor(Scalar s, Location here) {
  return scalar_tensor(s, s.is_real ? DType::f32 : s.is_bool ? DType::boolean : DType::i64, here);
}
/// The number in the dtype that it has beside a tensor.
Tensor beside(const Tensor& tensor, Scalar s, Location here) {
  if (s.is_real && is_floating(tensor.dtype())) return scalar_tensor(s, tensor.dtype(), here);
  return as_tensor(s, here);
}

}  // namespace

TAPER_DECOMPOSITION(square) { return {pow(a.tensor<"self">(), 2, a.here())}; }
TAPER_DECOMPOSITION(rsub_Scalar) {
  const Tensor self = a.tensor<"self">();
  if (self.dtype() == DType::boolean)
    throw EagerError(a.here(), "rsub: is not defined for bool tensors");
  const Scalar alpha = a.scalar<"alpha">();
  if (alpha.is_real && !is_floating(self.dtype()))
    throw EagerError(a.here(), "rsub: alpha must be an integer for integer tensors");
  return {add(neg(alpha.to<double>() == 1 ? self : mul(self, alpha, a.here()), a.here()),
              a.scalar<"other">(), 1, a.here())};
}
TAPER_DECOMPOSITION(rsub_Tensor) {
  return {sub(a.tensor<"other">(), a.tensor<"self">(), a.scalar<"alpha">(), a.here())};
}
TAPER_DECOMPOSITION(floor_divide) {
  return {div(a.tensor<"self">(), a.tensor<"other">(), "floor", a.here())};
}
TAPER_DECOMPOSITION(floor_divide_Scalar) {
  return {div(a.tensor<"self">(), a.scalar<"other">(), "floor", a.here())};
}
TAPER_DECOMPOSITION(max_other) {
  return {maximum(a.tensor<"self">(), a.tensor<"other">(), a.here())};
}
TAPER_DECOMPOSITION(min_other) {
  return {minimum(a.tensor<"self">(), a.tensor<"other">(), a.here())};
}
TAPER_DECOMPOSITION(__and___Tensor) {
  return {bitwise_and(a.tensor<"self">(), a.tensor<"other">(), a.here())};
}
TAPER_DECOMPOSITION(__and___Scalar) {
  return {bitwise_and(a.tensor<"self">(), a.scalar<"other">(), a.here())};
}

TAPER_DECOMPOSITION(where_ScalarOther) {
  const Tensor self = a.tensor<"self">();
  return {
      where(a.tensor<"condition">(), self, beside(self, a.scalar<"other">(), a.here()), a.here())};
}
TAPER_DECOMPOSITION(where_ScalarSelf) {
  const Tensor other = a.tensor<"other">();
  return {
      where(a.tensor<"condition">(), beside(other, a.scalar<"self">(), a.here()), other, a.here())};
}
TAPER_DECOMPOSITION(where_Scalar) {
  return {where(a.tensor<"condition">(), as_tensor(a.scalar<"self">(), a.here()),
                as_tensor(a.scalar<"other">(), a.here()), a.here())};
}
TAPER_DECOMPOSITION(masked_fill_Tensor) {
  const Tensor self = a.tensor<"self">(), mask = a.tensor<"mask">(), value = a.tensor<"value">();
  if (value.rank() != 0)
    throw EagerError(a.here(),
                     "masked_fill: value must be a number or a tensor without dimensions, not " +
                         to_string(value.sizes()));
  if (mask.dtype() != DType::boolean)
    throw EagerError(a.here(), "masked_fill: mask must be a bool tensor");
  return {where(mask, cast(value, self.dtype(), a.here()), self, a.here())};
}

TAPER_DECOMPOSITION(relu6) { return {hardtanh(a.tensor<"self">(), 0, 6, a.here())}; }
// S. Klambauer et al., "Self-Normalizing Neural Networks", arXiv:1706.02515
TAPER_DECOMPOSITION_ROUNDED_ONCE(selu) {
  return {call<ops::elu>(a.here(), a.tensor<"self">(), Scalar(1.6732632423543772848),
                         Scalar(1.0507009873554804934), Scalar(1))};
}
TAPER_DECOMPOSITION_ROUNDED_ONCE(celu) {
  const double alpha = a.real<"alpha">();
  if (alpha == 0) throw EagerError(a.here(), "celu: alpha must not be 0");
  return {
      call<ops::elu>(a.here(), a.tensor<"self">(), Scalar(alpha), Scalar(1), Scalar(1 / alpha))};
}
// log(1 / (1 + exp(-x))) = min(x, 0) - log1p(exp(-|x|))
TAPER_DECOMPOSITION_ROUNDED_ONCE(log_sigmoid) {
  const Tensor x = a.tensor<"self">();
  const Location here = a.here();
  return {sub(minimum(x, zeros_like(x, {}, here), here),
              log1p(exp(neg(abs(x, here), here), here), here), 1, here)};
}
TAPER_DECOMPOSITION(threshold) {
  const Tensor x = a.tensor<"self">();
  return {masked_fill(x, le(x, a.scalar<"threshold">(), a.here()), a.scalar<"value">(), a.here())};
}

}  // namespace taper::eager::decompositions
