// Operators that are another operator under a second name, or with arguments in another form.
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

template <Name name, const Operator& op>
std::optional<Scalar> number(const Arguments<op>& a) {
  return a.template has<name>() ? std::optional(a.template scalar<name>()) : std::nullopt;
}
template <Name name, const Operator& op>
std::optional<Tensor> optional(const Arguments<op>& a) {
  return a.template has<name>() ? std::optional(a.template tensor<name>()) : std::nullopt;
}

}  // namespace

TAPER_DECOMPOSITION(absolute) { return {abs(a.tensor<"self">())}; }
TAPER_DECOMPOSITION(sgn) { return {sign(a.tensor<"self">())}; }
TAPER_DECOMPOSITION(positive) {
  const Tensor self = a.tensor<"self">();
  if (self.dtype() == DType::boolean) throw EagerError("positive: is not defined for bool tensors");
  return {self};
}
TAPER_DECOMPOSITION(lift_fresh) { return {a.tensor<"self">()}; }

TAPER_DECOMPOSITION(clip) {
  return {clamp(a.tensor<"self">(), number<"min">(a), number<"max">(a))};
}
TAPER_DECOMPOSITION(clip_Tensor) {
  return {clamp(a.tensor<"self">(), optional<"min">(a), optional<"max">(a))};
}
TAPER_DECOMPOSITION(clamp_min_Tensor) { return {maximum(a.tensor<"self">(), a.tensor<"min">())}; }
TAPER_DECOMPOSITION(clamp_max_Tensor) { return {minimum(a.tensor<"self">(), a.tensor<"max">())}; }

TAPER_DECOMPOSITION(multiply_Tensor) { return {mul(a.tensor<"self">(), a.tensor<"other">())}; }
TAPER_DECOMPOSITION(subtract_Tensor) {
  return {sub(a.tensor<"self">(), a.tensor<"other">(), a.scalar<"alpha">())};
}
TAPER_DECOMPOSITION(true_divide_Tensor) { return {div(a.tensor<"self">(), a.tensor<"other">())}; }
TAPER_DECOMPOSITION(divide_Tensor) { return {div(a.tensor<"self">(), a.tensor<"other">())}; }
TAPER_DECOMPOSITION(float_power_Tensor_Tensor) {
  return {pow(cast(a.tensor<"self">(), DType::f64), cast(a.tensor<"exponent">(), DType::f64))};
}
TAPER_DECOMPOSITION(float_power_Tensor_Scalar) {
  return {pow(cast(a.tensor<"self">(), DType::f64), a.scalar<"exponent">())};
}
TAPER_DECOMPOSITION(float_power_Scalar) {
  return {pow(a.scalar<"self">(), cast(a.tensor<"exponent">(), DType::f64))};
}
// Writes the angles to `out`.
TAPER_DECOMPOSITION(atan2_out) {
  Tensor out = a.tensor<"out">();
  const Tensor angles = atan2(a.tensor<"self">(), a.tensor<"other">());
  if (!is_floating(out.dtype()))
    throw EagerError(std::string("atan2: out must have a floating dtype, not ") +
                     taper::name_of(out.dtype()));
  if (angles.sizes() != out.sizes())
    throw EagerError("atan2: out must be " + to_string(angles.sizes()) + ", it is " +
                     to_string(out.sizes()));
  return {out.copy_(angles)};
}

TAPER_DECOMPOSITION(__and___Tensor) {
  return {bitwise_and(a.tensor<"self">(), a.tensor<"other">())};
}
TAPER_DECOMPOSITION(__and___Scalar) {
  return {bitwise_and(a.tensor<"self">(), a.scalar<"other">())};
}
TAPER_DECOMPOSITION(__or___Tensor) { return {bitwise_or(a.tensor<"self">(), a.tensor<"other">())}; }
TAPER_DECOMPOSITION(__or___Scalar) { return {bitwise_or(a.tensor<"self">(), a.scalar<"other">())}; }
TAPER_DECOMPOSITION(__xor___Tensor) {
  return {bitwise_xor(a.tensor<"self">(), a.tensor<"other">())};
}
TAPER_DECOMPOSITION(__xor___Scalar) {
  return {bitwise_xor(a.tensor<"self">(), a.scalar<"other">())};
}

// PyTorch's unsafe version does not check the indices; this one does.
TAPER_DECOMPOSITION(_unsafe_index_Tensor) {
  return {index(a.tensor<"self">(), a.tensors<"indices">())};
}
TAPER_DECOMPOSITION(reshape_as) {
  return {reshape(a.tensor<"self">(), a.tensor<"other">().sizes())};
}
TAPER_DECOMPOSITION(broadcast_to) { return {expand(a.tensor<"self">(), a.dims<"size">())}; }
TAPER_DECOMPOSITION(__lshift___Tensor) {
  return {call<ops::bitwise_left_shift_Tensor>(a.tensor<"self">(), a.tensor<"other">())};
}
TAPER_DECOMPOSITION(__lshift___Scalar) {
  return {call<ops::bitwise_left_shift_Tensor_Scalar>(a.tensor<"self">(), a.scalar<"other">())};
}
TAPER_DECOMPOSITION(__rshift___Tensor) {
  return {call<ops::bitwise_right_shift_Tensor>(a.tensor<"self">(), a.tensor<"other">())};
}
TAPER_DECOMPOSITION(__rshift___Scalar) {
  return {call<ops::bitwise_right_shift_Tensor_Scalar>(a.tensor<"self">(), a.scalar<"other">())};
}
TAPER_DECOMPOSITION(special_xlogy) { return {xlogy(a.tensor<"self">(), a.tensor<"other">())}; }
// Sorting is always stable.
TAPER_DECOMPOSITION(sort_stable) {
  auto [values, indices] =
      call<ops::sort>(a.tensor<"self">(), a.integer<"dim">(), a.boolean<"descending">());
  return {values, indices};
}

}  // namespace taper::eager::decompositions
