// Derivatives of fake quantization. Rounding counts as the identity, and clamped elements have no
// gradient (the straight-through estimator: Bengio, Léonard, Courville 2013, arXiv:1308.3432). As
// in PyTorch, scales and zero points are constants unless they are learned (Esser et al., "Learned
// step size quantization", ICLR 2020).
#include "taper/exporter/eager/decompositions/quantization.h"
#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {
namespace {

/// Where the integers lie in [quant_min, quant_max] before clamping.
template <const Operator& op, class Number>
Tensor inside(const Saved<op>& saved, const Tensor& x, const Grid<Number>& grid) {
  const Tensor q = unclamped(x, grid.inverse, grid.zero_point);
  return logical_and(q >= saved.template integer<"quant_min">(),
                     q <= saved.template integer<"quant_max">());
}

/// The gradients with learned scales and zero points. Both change the values of clamped elements;
/// the scale also changes the rounding error of the others. `sum_up` adds the elements that share a
/// scale.
template <const Operator& op, class SumUp>
Gradients learned(const Saved<op>& saved, const Tensor& dy, const Grid<Tensor>& grid,
                  const SumUp& sum_up) {
  const Tensor x = saved.template tensor<"self">();
  const int64_t low = saved.template integer<"quant_min">(),
                high = saved.template integer<"quant_max">();
  const Tensor in = inside(saved, x, grid);
  const Tensor dy_times = mul(dy, Scalar(saved.template real<"grad_factor">()));
  Gradients result{keep(dy, in), Tensor(), Tensor()};
  if (saved.template needs<"scale">()) {
    const Tensor q = clamp(unclamped(x, grid.inverse, grid.zero_point), low, high);
    const Tensor steps = sub(q, grid.zero_point);
    const Tensor error = mul(sub(mul(steps, grid.scale), x), grid.inverse);
    result[1] = sum_up(mul(dy_times, where(in, error, steps)));
  }
  if (saved.template needs<"zero_point">())
    result[2] = sum_up(masked_fill(mul(dy_times, neg(grid.scale)), in, 0));
  return result;
}

}  // namespace

TAPER_DERIVATIVE(fake_quantize_per_tensor_affine, "self") {
  const Grid grid = grid_of(saved.real<"scale">(), saved.integer<"zero_point">());
  return {keep(dy, inside(saved, saved.tensor<"self">(), grid))};
}
TAPER_DERIVATIVE(fake_quantize_per_tensor_affine_tensor_qparams, "self", "scale", "zero_point") {
  constexpr std::string_view op = schema<ops::fake_quantize_per_tensor_affine_tensor_qparams>.name;
  const Grid grid = grid_of(saved.tensor<"scale">(), saved.tensor<"zero_point">(), op);
  return {keep(dy, inside(saved, saved.tensor<"self">(), grid)), Tensor(), Tensor()};
}
TAPER_DERIVATIVE(fake_quantize_per_channel_affine, "self", "scale", "zero_point") {
  const Tensor self = saved.tensor<"self">();
  const Grid grid =
      grid_along(saved.integer<"axis">(), self, saved.tensor<"scale">(),
                 saved.tensor<"zero_point">(), schema<ops::fake_quantize_per_channel_affine>.name);
  return {keep(dy, inside(saved, self, grid)), Tensor(), Tensor()};
}
TAPER_DERIVATIVE(quantized_decomposed_fake_quant_per_channel, "input", "scales", "zero_points") {
  const Tensor input = saved.tensor<"input">();
  const Grid grid = grid_along(saved.integer<"axis">(), input, saved.tensor<"scales">(),
                               saved.tensor<"zero_points">(),
                               schema<ops::quantized_decomposed_fake_quant_per_channel>.name);
  return {keep(dy, inside(saved, input, grid)), Tensor(), Tensor()};
}

TAPER_DERIVATIVE(fake_quantize_per_tensor_affine_cachemask, "result1", "only result0") {
  return {keep(dy, saved.result(1))};
}
TAPER_DERIVATIVE(fake_quantize_per_channel_affine_cachemask, "result1", "only result0") {
  return {keep(dy, saved.result(1)), Tensor(), Tensor()};
}
TAPER_DERIVATIVE(_fake_quantize_per_tensor_affine_cachemask_tensor_qparams, "result1",
                 "only result0") {
  return {keep(dy, saved.result(1)), Tensor(), Tensor(), Tensor()};
}
TAPER_DERIVATIVE(_fused_moving_avg_obs_fq_helper, "result1", "only result0") {
  Gradients result(7);  // statistics, scales and zero points have no gradient
  result[0] = keep(dy, saved.result(1));
  return result;
}

TAPER_DERIVATIVE(_fake_quantize_learnable_per_tensor_affine, "self", "scale", "zero_point") {
  Grid grid = grid_of(saved.tensor<"scale">(), saved.tensor<"zero_point">(),
                      schema<ops::_fake_quantize_learnable_per_tensor_affine>.name);
  // here PyTorch adds 0.5 and truncates: halves go up, and negative numbers towards 0
  grid.zero_point = trunc(
      clamp(grid.zero_point + 0.5, saved.integer<"quant_min">(), saved.integer<"quant_max">()));
  const Dims one = saved.sizes<"scale">();
  return learned(saved, dy, grid, [&](const Tensor& t) { return reshape(sum(t), one); });
}
TAPER_DERIVATIVE(_fake_quantize_learnable_per_channel_affine, "self", "scale", "zero_point") {
  const Tensor self = saved.tensor<"self">();
  const int64_t axis = saved.integer<"axis">();
  Grid grid = grid_along(axis, self, saved.tensor<"scale">(), saved.tensor<"zero_point">(),
                         schema<ops::_fake_quantize_learnable_per_channel_affine>.name);
  grid.zero_point =
      clamp(round(grid.zero_point), saved.integer<"quant_min">(), saved.integer<"quant_max">());
  Ints others;
  for (int64_t d = 0; d < self.rank(); ++d)
    if (d != axis && d != axis + self.rank()) others.push_back(d);
  return learned(saved, dy, grid,
                 [&](const Tensor& t) { return others.empty() ? t : sum(t, others); });
}

}  // namespace taper::eager::derivatives
