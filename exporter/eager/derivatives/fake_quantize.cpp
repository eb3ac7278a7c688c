// Derivatives of fake quantization: rounding counts as the identity, and what is clamped has none
// (the straight-through estimator: Bengio, Léonard, Courville 2013, arXiv:1308.3432). Scales and
// zero points are constants, as in PyTorch.
#include "taper/exporter/eager/decompositions/quantization.h"
#include "taper/exporter/eager/derivatives/derivative.h"

namespace taper::eager::derivatives {
namespace {

/// Where the integers lie in [quant_min, quant_max] before they are clamped.
template <const Operator& op, class Number>
Tensor inside(const Saved<op>& saved, const Tensor& x, const Grid<Number>& grid) {
  const Tensor q = unclamped(x, grid.inverse, grid.zero_point, saved.here());
  return logical_and(q >= saved.template integer<"quant_min">(),
                     q <= saved.template integer<"quant_max">());
}
/// dy where the mask is set, else 0.
Tensor keep(const Tensor& dy, const Tensor& mask) { return masked_fill(dy, logical_not(mask), 0); }

}  // namespace

TAPER_DERIVATIVE(fake_quantize_per_tensor_affine, "self") {
  const Grid grid = grid_of(saved.real<"scale">(), saved.integer<"zero_point">());
  return {keep(dy, inside(saved, saved.tensor<"self">(), grid))};
}
TAPER_DERIVATIVE(fake_quantize_per_tensor_affine_tensor_qparams, "self", "scale", "zero_point") {
  constexpr std::string_view op = schema<ops::fake_quantize_per_tensor_affine_tensor_qparams>.name;
  const Grid grid =
      grid_of(saved.tensor<"scale">(), saved.tensor<"zero_point">(), op, saved.here());
  return {keep(dy, inside(saved, saved.tensor<"self">(), grid)), Tensor(), Tensor()};
}
TAPER_DERIVATIVE(fake_quantize_per_channel_affine, "self", "scale", "zero_point") {
  const Tensor self = saved.tensor<"self">();
  const Grid grid = grid_along(saved.integer<"axis">(), self, saved.tensor<"scale">(),
                               saved.tensor<"zero_point">(),
                               schema<ops::fake_quantize_per_channel_affine>.name, saved.here());
  return {keep(dy, inside(saved, self, grid)), Tensor(), Tensor()};
}
TAPER_DERIVATIVE(quantized_decomposed_fake_quant_per_channel, "input", "scales", "zero_points") {
  const Tensor input = saved.tensor<"input">();
  const Grid grid = grid_along(
      saved.integer<"axis">(), input, saved.tensor<"scales">(), saved.tensor<"zero_points">(),
      schema<ops::quantized_decomposed_fake_quant_per_channel>.name, saved.here());
  return {keep(dy, inside(saved, input, grid)), Tensor(), Tensor()};
}

}  // namespace taper::eager::derivatives
