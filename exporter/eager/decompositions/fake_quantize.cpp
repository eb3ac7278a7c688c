// Fake quantization: to integers and back, for quantization-aware training. Its derivatives are in
// derivatives/fake_quantize.cpp.
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/decompositions/quantization.h"

namespace taper::eager::decompositions {
namespace {

/// The integers, before they are clamped to low, …, high.
template <const Operator& op, class Number>
Tensor integers(const Arguments<op>& a, const Tensor& x, const Grid<Number>& grid) {
  const int64_t low = a.template integer<"quant_min">(), high = a.template integer<"quant_max">();
  if (low > high)
    throw EagerError(std::string(schema<op>.name) + ": quant_min " + std::to_string(low) +
                     " is greater than quant_max " + std::to_string(high));
  if (!is_floating(x.dtype()))
    throw EagerError(std::string(schema<op>.name) + ": the input must be floating, not " +
                     taper::name_of(x.dtype()));
  return unclamped(x, grid.inverse, grid.zero_point);
}
/// The values of the clamped integers.
template <const Operator& op, class Number>
Tensor values_of(const Arguments<op>& a, const Tensor& q, const Grid<Number>& grid, DType dtype) {
  const Tensor clamped =
      clamp(q, a.template integer<"quant_min">(), a.template integer<"quant_max">());
  return cast(mul(sub(clamped, grid.zero_point), grid.scale), dtype);
}

template <const Operator& op, class Number>
Tensor snapped(const Arguments<op>& a, const Tensor& x, const Grid<Number>& grid) {
  return values_of(a, integers(a, x, grid), grid, x.dtype());
}
/// The values, and the mask of elements that were not clamped. Only these pass the gradient on.
template <const Operator& op, class Number>
Results snapped_with_mask(const Arguments<op>& a, const Grid<Number>& grid) {
  const Tensor self = a.template tensor<"self">(), q = integers(a, self, grid);
  return {values_of(a, q, grid, self.dtype()),
          logical_and(ge(q, Scalar(a.template integer<"quant_min">())),
                      le(q, Scalar(a.template integer<"quant_max">())))};
}

/// The grids of the calls: for the whole tensor, from numbers or from tensors; and along an axis.
template <const Operator& op>
Grid<Scalar> grid_of_numbers(const Arguments<op>& a) {
  return grid_of(a.template real<"scale">(), a.template integer<"zero_point">());
}
template <const Operator& op>
Grid<Tensor> grid_of_tensors(const Arguments<op>& a) {
  return grid_of(a.template tensor<"scale">(), a.template tensor<"zero_point">(), schema<op>.name);
}
void need_channels(const Tensor& scale, std::string_view op) {
  if (scale.rank() == 1 && proves_equal(scale.size(0), Dim(0)))
    throw EagerError(std::string(op) + ": there is no channel, and no scale");
}
template <const Operator& op>
Grid<Tensor> grid_along_axis(const Arguments<op>& a) {
  need_channels(a.template tensor<"scale">(), schema<op>.name);
  return grid_along(a.template integer<"axis">(), a.template tensor<"self">(),
                    a.template tensor<"scale">(), a.template tensor<"zero_point">(),
                    schema<op>.name);
}

/// The grid with its zero points rounded to integers of the range.
template <const Operator& op>
Grid<Tensor> on_integers(const Arguments<op>& a, Grid<Tensor> grid) {
  grid.zero_point = clamp(round(grid.zero_point), a.template integer<"quant_min">(),
                          a.template integer<"quant_max">());
  return grid;
}

}  // namespace

TAPER_DECOMPOSITION(fake_quantize_per_tensor_affine) {
  return {snapped(a, a.tensor<"self">(), grid_of_numbers(a))};
}
TAPER_DECOMPOSITION(fake_quantize_per_tensor_affine_tensor_qparams) {
  return {snapped(a, a.tensor<"self">(), grid_of_tensors(a))};
}
TAPER_DECOMPOSITION(fake_quantize_per_channel_affine) {
  return {snapped(a, a.tensor<"self">(), grid_along_axis(a))};
}
TAPER_DECOMPOSITION(quantized_decomposed_fake_quant_per_channel) {
  const Tensor input = a.tensor<"input">();
  need_channels(a.tensor<"scales">(),
                schema<ops::quantized_decomposed_fake_quant_per_channel>.name);
  const Grid grid =
      grid_along(a.integer<"axis">(), input, a.tensor<"scales">(), a.tensor<"zero_points">(),
                 schema<ops::quantized_decomposed_fake_quant_per_channel>.name);
  return {snapped(a, input, grid)};
}

// ---- with the mask of elements that were not clamped

TAPER_DECOMPOSITION(fake_quantize_per_tensor_affine_cachemask) {
  return snapped_with_mask(a, grid_of_numbers(a));
}
TAPER_DECOMPOSITION(fake_quantize_per_channel_affine_cachemask) {
  return snapped_with_mask(a, grid_along_axis(a));
}
TAPER_DECOMPOSITION(_fake_quantize_per_tensor_affine_cachemask_tensor_qparams) {
  const Results results = snapped_with_mask(a, grid_of_tensors(a));
  const Tensor off = eq(single(a.tensor<"fake_quant_enabled">(), "fake_quant_enabled", DType::i64,
                               "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams"),
                        Scalar(0));
  return {where(off, a.tensor<"self">(), results[0]), logical_or(results[1], off)};
}

// ---- with scales and zero points that are learned

TAPER_DECOMPOSITION(_fake_quantize_learnable_per_tensor_affine) {
  return {snapped(a, a.tensor<"self">(), on_integers(a, grid_of_tensors(a)))};
}
TAPER_DECOMPOSITION(_fake_quantize_learnable_per_channel_affine) {
  return {snapped(a, a.tensor<"self">(), on_integers(a, grid_along_axis(a)))};
}

}  // namespace taper::eager::decompositions
