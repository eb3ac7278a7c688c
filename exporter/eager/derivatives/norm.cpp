#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/derivatives/differentiate.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {
namespace {

/// The gradients of a normalisation over the dimensions `over` of x, in plain operators:
///
///   dx = rstd (g - mean(g) - xhat mean(g xhat)),  g = dy weight,  xhat = (x - mean) rstd
///
/// `mean` and `rstd` have the values of the forward pass, but depend on x like mean and 1 /
/// sqrt(var + eps), so that they can be differentiated. Results: dx; dy xhat and dy, which the
/// caller sums to the shapes of weight and bias.
std::vector<Tensor> normalization_gradients(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                            const Tensor& mean_value, const Tensor& rstd_value,
                                            const Ints& over) {
  const auto average = [&](const Tensor& t) { return mean(t, over, true); };
  const Tensor m = average(x), center = mean_value + (m - m.detach());
  const Tensor variance = average((x - center) * (x - center));
  const Tensor change = rstd_value * rstd_value * (variance - variance.detach());
  const Tensor rstd = rstd_value * rsqrt(change + 1);
  const Tensor xhat = (x - center) * rstd, g = weight.defined() ? dy * weight : dy;
  return {rstd * (g - average(g) - xhat * average(g * xhat)), dy * xhat, dy};
}

/// Reshapes a vector (channels) to broadcast with x (batch, channels, …).
Tensor beside_channels(const Tensor& v, int rank) {
  if (!v.defined()) return v;
  Dims sizes(static_cast<size_t>(rank), Dim(1));
  sizes[1] = v.numel();
  return v.reshape(sizes);
}
Ints all_but_channels(int rank) {
  Ints dims{0};
  for (int i = 2; i < rank; ++i) dims.push_back(i);
  return dims;
}

template <class S>
Gradients batch_norm_gradients(const S& saved, const Tensor& dy, const Tensor& running_mean,
                               const Tensor& running_var, const Tensor& save_mean,
                               const Tensor& save_invstd, bool training) {
  const bool x = saved.template needs<"input">(), w = saved.template needs<"weight">(),
             b = saved.template needs<"bias">();
  const auto [dx, dw, db] = call<ops::native_batch_norm_backward>(
      dy, saved.template tensor<"input">(), saved.template tensor<"weight">(), running_mean,
      running_var, save_mean, save_invstd, training, saved.template real<"eps">(), Ints{x, w, b});
  return {dx, dw, db, {}, {}};
}

}  // namespace

TAPER_DERIVATIVE(_native_batch_norm_legit_no_training, "only result0", "input", "weight",
                 "running_mean", "running_var") {
  return batch_norm_gradients(saved, dy, saved.tensor<"running_mean">(),
                              saved.tensor<"running_var">(), {}, {}, false);
}

TAPER_DERIVATIVE(_native_batch_norm_legit_no_stats, "only result0", "input", "weight", "result1",
                 "result2") {
  Gradients all = batch_norm_gradients(saved, dy, {}, {}, saved.result(1), saved.result(2), true);
  all.resize(3);
  return all;
}

// Evaluation returns the running statistics unchanged, so results 3 and 4 are the ones it used. The
// arguments are not saved, because training writes to them next.
TAPER_DERIVATIVE(_native_batch_norm_legit_functional, "only result0", "input", "weight", "result1",
                 "result2", "result3", "result4") {
  if (!dy.defined()) return {{}, {}, {}, {}, {}};  // the statistics have no derivative
  return batch_norm_gradients(saved, dy, saved.result(3), saved.result(4), saved.result(1),
                              saved.result(2), saved.boolean<"training">());
}

TAPER_DERIVATIVE(native_batch_norm_backward, "grad_out", "input", "weight", "running_mean",
                 "running_var", "save_mean", "save_invstd") {
  const int rank = saved.tensor<"input">().rank();
  const bool training = saved.boolean<"train">();
  const Tensor mean_value = beside_channels(
      training ? saved.tensor<"save_mean">() : saved.tensor<"running_mean">(), rank);
  const Tensor rstd_value =
      training ? beside_channels(saved.tensor<"save_invstd">(), rank)
               : rsqrt(beside_channels(saved.tensor<"running_var">(), rank) + saved.real<"eps">());
  const Ints over = all_but_channels(rank);
  const auto function = [&](const std::vector<Tensor>& v) -> std::vector<Tensor> {
    const Tensor &d = v[0], &x = v[1], weight = beside_channels(v[2], rank);
    std::vector<Tensor> parts;
    if (training) {
      parts = normalization_gradients(d, x, weight, mean_value, rstd_value, over);
    } else {
      parts = {(weight.defined() ? d * weight : d) * rstd_value,
               d * ((x - mean_value) * rstd_value), d};
    }
    return {parts[0], sum(parts[1], over), sum(parts[2], over)};
  };
  Gradients all = differentiate(
      function, {saved.tensor<"grad_out">(), saved.tensor<"input">(), saved.tensor<"weight">()},
      {saved.needs<"grad_out">(), saved.needs<"input">(), saved.needs<"weight">()}, dys);
  all.resize(7);
  return all;
}

TAPER_DERIVATIVE(native_layer_norm, "only result0", "input", "weight", "bias", "result1",
                 "result2") {
  if (!dy.defined()) return {{}, {}, {}};
  const auto [dx, dw, db] = call<ops::native_layer_norm_backward>(
      dy, saved.tensor<"input">(), saved.dims<"normalized_shape">(), saved.result(1),
      saved.result(2), saved.tensor<"weight">(), saved.tensor<"bias">(),
      Ints{saved.needs<"input">(), saved.needs<"weight">(), saved.needs<"bias">()});
  return {dx, dw, db};
}

// With r = rstd over n elements and g = dy weight: dx = r g - r³ x (Σ g x + dr) / n. dr is the
// gradient of rstd itself, which PyTorch also passes.
TAPER_DERIVATIVE(_fused_rms_norm, "input", "weight", "result1") {
  const Tensor rstd_value = saved.result(1), weight = saved.tensor<"weight">();
  const DType dtype = rstd_value.dtype();  // f32 for f16 and bf16
  const Tensor x = saved.tensor<"input">().to(dtype);
  const int rank = x.rank(), inner = static_cast<int>(saved.integers<"normalized_shape">().size());
  Dim n = 1;
  for (int i = rank - inner; i < rank; ++i) n *= x.size(i);
  Ints over, rows;
  for (int i = 0; i < rank; ++i) (i < rank - inner ? rows : over).push_back(i);
  Tensor projection = dys[1], dx, dweight;
  if (dy.defined()) {
    const Tensor d = dy.to(dtype), g = weight.defined() ? d * weight.to(dtype) : d;
    const Tensor along = sum(g * x, over, true);
    projection = projection.defined() ? projection + along : along;
    dx = g * rstd_value;
    if (saved.needs<"weight">()) {
      const Tensor scaled = d * x * rstd_value;
      dweight = rows.empty() ? scaled : sum(scaled, rows);
    }
  }
  const Tensor along_x = x * (projection * pow(rstd_value, 3));
  const Tensor radial = n.is_constant() ? along_x / Scalar(static_cast<double>(n.value()))
                                        : along_x / sum(ones({n}, dtype));
  return {dx.defined() ? dx - radial : -radial, dweight};
}

TAPER_DERIVATIVE(native_layer_norm_backward, "grad_out", "input", "mean", "rstd", "weight") {
  const int rank = saved.tensor<"input">().rank(),
            inner = static_cast<int>(saved.dims<"normalized_shape">().size());
  Ints over, rows;
  for (int i = 0; i < rank; ++i) (i < rank - inner ? rows : over).push_back(i);
  const Tensor mean_value = saved.tensor<"mean">(), rstd_value = saved.tensor<"rstd">();
  const auto function = [&](const std::vector<Tensor>& v) -> std::vector<Tensor> {
    const std::vector<Tensor> parts =
        normalization_gradients(v[0], v[1], v[2], mean_value, rstd_value, over);
    return {parts[0], rows.empty() ? parts[1] : sum(parts[1], rows),
            rows.empty() ? parts[2] : sum(parts[2], rows)};
  };
  const Gradients all = differentiate(
      function, {saved.tensor<"grad_out">(), saved.tensor<"input">(), saved.tensor<"weight">()},
      {saved.needs<"grad_out">(), saved.needs<"input">(), saved.needs<"weight">()}, dys);
  return {all[0], all[1], {}, {}, all[2], {}};
}

// mean and rstd are results with gradients of their own. Over n elements, d mean / dx = 1 / n and d
// rstd / dx = -rstd³ (x - mean) / n.
TAPER_DERIVATIVE(native_group_norm, "input", "weight", "result1", "result2") {
  Tensor dx, dw, db;
  if (dy.defined())
    std::tie(dx, dw, db) = call<ops::native_group_norm_backward>(
        dy, saved.tensor<"input">(), saved.result(1), saved.result(2), saved.tensor<"weight">(),
        saved.dim<"N">(), saved.dim<"C">(), saved.dim<"HxW">(), saved.integer<"group">(),
        Ints{saved.needs<"input">(), saved.needs<"weight">(), saved.needs<"bias">()});
  if ((dys[1].defined() || dys[2].defined()) && saved.needs<"input">()) {
    const Dim n = saved.dim<"N">(), groups = saved.integer<"group">(),
              count = saved.dim<"C">() / groups * saved.dim<"HxW">();
    const Dims statistics{n, groups, 1}, sizes = saved.sizes<"input">();
    const Tensor x = saved.tensor<"input">().reshape({n, groups, count});
    Tensor slope = x * 0.0;
    if (dys[1].defined()) slope = slope + dys[1].reshape(statistics);
    if (dys[2].defined()) {
      const Tensor mean = saved.result(1).reshape(statistics),
                   rstd = saved.result(2).reshape(statistics);
      slope = slope - dys[2].reshape(statistics) * rstd * rstd * rstd * (x - mean);
    }
    const Tensor more = (slope / static_cast<double>(count.value())).reshape(sizes);
    dx = dx.defined() ? dx + more : more;
  }
  return {dx, dw, db};
}

TAPER_DERIVATIVE(native_group_norm_backward, "grad_out", "input", "mean", "rstd", "weight") {
  const Dim n = saved.dim<"N">(), channels = saved.dim<"C">(), groups = saved.integer<"group">();
  const Dims grouped{n, groups, channels / groups, saved.dim<"HxW">()}, statistics{n, groups, 1, 1};
  const Dims sizes = saved.sizes<"input">();
  const Tensor mean_value = saved.tensor<"mean">().reshape(statistics),
               rstd_value = saved.tensor<"rstd">().reshape(statistics);
  const auto function = [&](const std::vector<Tensor>& v) -> std::vector<Tensor> {
    const Tensor weight =
        v[2].defined() ? v[2].reshape({1, groups, channels / groups, 1}) : Tensor();
    const std::vector<Tensor> parts = normalization_gradients(
        v[0].reshape(grouped), v[1].reshape(grouped), weight, mean_value, rstd_value, {2, 3});
    return {parts[0].reshape(sizes), sum(parts[1], {0, 3}).reshape({channels}),
            sum(parts[2], {0, 3}).reshape({channels})};
  };
  const Gradients all = differentiate(
      function, {saved.tensor<"grad_out">(), saved.tensor<"input">(), saved.tensor<"weight">()},
      {saved.needs<"grad_out">(), saved.needs<"input">(), saved.needs<"weight">()}, dys);
  return {all[0], all[1], {}, {}, all[2]};
}

}  // namespace taper::eager::derivatives
