// Fake quantization: to integers and back, for quantization-aware training. The derivatives stand
// in derivatives/fake_quantize.cpp.
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/decompositions/quantization.h"

namespace taper::eager::decompositions {
namespace {

/// What the nearest of the integers low, …, high stands for.
template <const Operator& op, class Number>
Tensor snapped(const Arguments<op>& a, const Tensor& x, const Grid<Number>& grid) {
  const Location here = a.here();
  const int64_t low = a.template integer<"quant_min">(), high = a.template integer<"quant_max">();
  if (low > high)
    throw EagerError(here, std::string(schema<op>.name) + ": quant_min " + std::to_string(low) +
                               " is greater than quant_max " + std::to_string(high));
  if (!is_floating(x.dtype()))
    throw EagerError(here, std::string(schema<op>.name) + ": the input must be floating, not " +
                               taper::name_of(x.dtype()));
  const Tensor q = clamp(unclamped(x, grid.inverse, grid.zero_point, here), low, high, here);
  return cast(mul(sub(q, grid.zero_point, 1, here), grid.scale, here), x.dtype(), here);
}

}  // namespace

TAPER_DECOMPOSITION(fake_quantize_per_tensor_affine) {
  return {snapped(a, a.tensor<"self">(), grid_of(a.real<"scale">(), a.integer<"zero_point">()))};
}
TAPER_DECOMPOSITION(fake_quantize_per_tensor_affine_tensor_qparams) {
  constexpr std::string_view op = schema<ops::fake_quantize_per_tensor_affine_tensor_qparams>.name;
  return {snapped(a, a.tensor<"self">(),
                  grid_of(a.tensor<"scale">(), a.tensor<"zero_point">(), op, a.here()))};
}
TAPER_DECOMPOSITION(fake_quantize_per_channel_affine) {
  const Tensor self = a.tensor<"self">();
  return {
      snapped(a, self,
              grid_along(a.integer<"axis">(), self, a.tensor<"scale">(), a.tensor<"zero_point">(),
                         schema<ops::fake_quantize_per_channel_affine>.name, a.here()))};
}
TAPER_DECOMPOSITION(quantized_decomposed_fake_quant_per_channel) {
  const Tensor input = a.tensor<"input">();
  return {snapped(
      a, input,
      grid_along(a.integer<"axis">(), input, a.tensor<"scales">(), a.tensor<"zero_points">(),
                 schema<ops::quantized_decomposed_fake_quant_per_channel>.name, a.here()))};
}

}  // namespace taper::eager::decompositions
