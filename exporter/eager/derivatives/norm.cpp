#include <functional>

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/reduction.h"
#include "taper/exporter/eager/ops/view.h"

namespace taper::eager::derivatives {
namespace {

/// The derivative of `function` at `inputs`, by writing it out in differentiable operators and
/// walking that tape. For second derivatives, where a formula would be long and gain nothing.
///   wanted        whether the gradient of an input is wanted; its input must be defined then
///   gradients     of the function's results; undefined: none
Gradients differentiate(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
    const std::vector<Tensor>& inputs, const std::vector<bool>& wanted, const Gradients& gradients,
    Location here) {
  const bool again = grad_enabled();
  NoGrad enabled(true);
  // Aliases end the walk: the inputs' own histories, which may reach each other, are not part of
  // the function.
  std::vector<Tensor> own, targets;
  for (size_t i = 0; i < inputs.size(); ++i) {
    own.push_back(inputs[i].defined() ? call<ops::alias>(here, inputs[i]) : Tensor());
    if (wanted[i]) targets.push_back(own.back());
  }
  const std::vector<Tensor> results = function(own);
  std::vector<Tensor> outputs, output_gradients;
  for (size_t k = 0; k < results.size(); ++k) {
    if (!gradients[k].defined() || !results[k].requires_grad()) continue;
    outputs.push_back(results[k]), output_gradients.push_back(gradients[k]);
  }
  Gradients all(inputs.size());
  if (targets.empty() || outputs.empty()) return all;
  const std::vector<Tensor> found = grad(outputs, targets, output_gradients, again,
                                         /*retain_graph=*/true, /*allow_unused=*/true, here);
  for (size_t i = 0, t = 0; i < inputs.size(); ++i)
    if (wanted[i]) all[i] = found[t++];
  return all;
}

/// The gradients of a normalisation over the dimensions `over` of x, written out:
///
///   dx = rstd (g - mean(g) - xhat mean(g xhat)),  g = dy weight,  xhat = (x - mean) rstd
///
/// `mean` and `rstd` have the values of the forward pass, and vary with x as mean and 1 / sqrt(var
/// + eps) do. Results: dx; dy xhat and dy, which the caller sums to the shapes of weight and bias.
std::vector<Tensor> normalization_gradients(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                            const Tensor& mean_value, const Tensor& rstd_value,
                                            const Ints& over) {
  const auto average = [&](const Tensor& t) { return mean(t, over, true); };
  const Tensor m = average(x), center = mean_value + (m - m.detach());
  const Tensor variance = average((x - center) * (x - center));
  const Tensor rstd = rsqrt(pow(rstd_value, -2) + (variance - variance.detach()));
  const Tensor xhat = (x - center) * rstd, g = weight.defined() ? dy * weight : dy;
  return {rstd * (g - average(g) - xhat * average(g * xhat)), dy * xhat, dy};
}

/// A vector (channels) beside x (batch, channels, …).
Tensor beside_channels(const Tensor& v, int rank, Location here) {
  if (!v.defined()) return v;
  Dims sizes(static_cast<size_t>(rank), Dim(1));
  sizes[1] = v.numel();
  return v.reshape(sizes, here);
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
      saved.here(), dy, saved.template tensor<"input">(), saved.template tensor<"weight">(),
      running_mean, running_var, save_mean, save_invstd, training, saved.template real<"eps">(),
      Ints{x, w, b});
  return {dx, dw, db, {}, {}};
}

}  // namespace

TAPER_DERIVATIVE(_native_batch_norm_legit_no_training, "input", "weight", "running_mean",
                 "running_var") {
  return batch_norm_gradients(saved, dy, saved.tensor<"running_mean">(),
                              saved.tensor<"running_var">(), {}, {}, false);
}

TAPER_DERIVATIVE(_native_batch_norm_legit_no_stats, "input", "weight", "result1", "result2") {
  Gradients all = batch_norm_gradients(saved, dy, {}, {}, saved.result(1), saved.result(2), true);
  all.resize(3);
  return all;
}

// Evaluation hands the running statistics through, so results 3 and 4 are what it used. The
// arguments are not kept: training writes to them next.
TAPER_DERIVATIVE(_native_batch_norm_legit_functional, "input", "weight", "result1", "result2",
                 "result3", "result4") {
  if (!dy.defined()) return {{}, {}, {}, {}, {}};  // the statistics have no derivative
  return batch_norm_gradients(saved, dy, saved.result(3), saved.result(4), saved.result(1),
                              saved.result(2), saved.boolean<"training">());
}

TAPER_DERIVATIVE(native_batch_norm_backward, "grad_out", "input", "weight", "running_mean",
                 "running_var", "save_mean", "save_invstd") {
  const Location here = saved.here();
  const int rank = saved.tensor<"input">().rank();
  const bool training = saved.boolean<"train">();
  const Tensor mean_value = beside_channels(
      training ? saved.tensor<"save_mean">() : saved.tensor<"running_mean">(), rank, here);
  const Tensor rstd_value =
      training
          ? beside_channels(saved.tensor<"save_invstd">(), rank, here)
          : rsqrt(beside_channels(saved.tensor<"running_var">(), rank, here) + saved.real<"eps">());
  const Ints over = all_but_channels(rank);
  const auto function = [&](const std::vector<Tensor>& v) -> std::vector<Tensor> {
    const Tensor &d = v[0], &x = v[1], weight = beside_channels(v[2], rank, here);
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
      {saved.needs<"grad_out">(), saved.needs<"input">(), saved.needs<"weight">()}, dys, here);
  all.resize(7);
  return all;
}

TAPER_DERIVATIVE(native_layer_norm, "input", "weight", "bias", "result1", "result2") {
  if (!dy.defined()) return {{}, {}, {}};
  const auto [dx, dw, db] = call<ops::native_layer_norm_backward>(
      saved.here(), dy, saved.tensor<"input">(), saved.dims<"normalized_shape">(), saved.result(1),
      saved.result(2), saved.tensor<"weight">(), saved.tensor<"bias">(),
      Ints{saved.needs<"input">(), saved.needs<"weight">(), saved.needs<"bias">()});
  return {dx, dw, db};
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
      {saved.needs<"grad_out">(), saved.needs<"input">(), saved.needs<"weight">()}, dys,
      saved.here());
  return {all[0], all[1], {}, {}, all[2], {}};
}

// Mean and rstd are results with gradients of their own: over n elements, d mean / dx = 1 / n, d
// rstd / dx = -rstd³ (x - mean) / n.
TAPER_DERIVATIVE(native_group_norm, "input", "weight", "result1", "result2") {
  const Location here = saved.here();
  Tensor dx, dw, db;
  if (dy.defined())
    std::tie(dx, dw, db) = call<ops::native_group_norm_backward>(
        here, dy, saved.tensor<"input">(), saved.result(1), saved.result(2),
        saved.tensor<"weight">(), saved.dim<"N">(), saved.dim<"C">(), saved.dim<"HxW">(),
        saved.integer<"group">(),
        Ints{saved.needs<"input">(), saved.needs<"weight">(), saved.needs<"bias">()});
  if ((dys[1].defined() || dys[2].defined()) && saved.needs<"input">()) {
    const Dim n = saved.dim<"N">(), groups = saved.integer<"group">(),
              count = saved.dim<"C">() / groups * saved.dim<"HxW">();
    const Dims statistics{n, groups, 1}, sizes = saved.sizes<"input">();
    const Tensor x = saved.tensor<"input">().reshape({n, groups, count}, here);
    Tensor slope = x * 0.0;
    if (dys[1].defined()) slope = slope + dys[1].reshape(statistics, here);
    if (dys[2].defined()) {
      const Tensor mean = saved.result(1).reshape(statistics, here),
                   rstd = saved.result(2).reshape(statistics, here);
      slope = slope - dys[2].reshape(statistics, here) * rstd * rstd * rstd * (x - mean);
    }
    const Tensor more = (slope / static_cast<double>(count.value())).reshape(sizes, here);
    dx = dx.defined() ? dx + more : more;
  }
  return {dx, dw, db};
}

TAPER_DERIVATIVE(native_group_norm_backward, "grad_out", "input", "mean", "rstd", "weight") {
  const Location here = saved.here();
  const Dim n = saved.dim<"N">(), channels = saved.dim<"C">(), groups = saved.integer<"group">();
  const Dims grouped{n, groups, channels / groups, saved.dim<"HxW">()}, statistics{n, groups, 1, 1};
  const Dims sizes = saved.sizes<"input">();
  const Tensor mean_value = saved.tensor<"mean">().reshape(statistics, here),
               rstd_value = saved.tensor<"rstd">().reshape(statistics, here);
  const auto function = [&](const std::vector<Tensor>& v) -> std::vector<Tensor> {
    const Tensor weight =
        v[2].defined() ? v[2].reshape({1, groups, channels / groups, 1}, here) : Tensor();
    const std::vector<Tensor> parts =
        normalization_gradients(v[0].reshape(grouped, here), v[1].reshape(grouped, here), weight,
                                mean_value, rstd_value, {2, 3});
    return {parts[0].reshape(sizes, here), sum(parts[1], {0, 3}).reshape({channels}, here),
            sum(parts[2], {0, 3}).reshape({channels}, here)};
  };
  const Gradients all = differentiate(
      function, {saved.tensor<"grad_out">(), saved.tensor<"input">(), saved.tensor<"weight">()},
      {saved.needs<"grad_out">(), saved.needs<"input">(), saved.needs<"weight">()}, dys, here);
  return {all[0], all[1], {}, {}, all[2]};
}

}  // namespace taper::eager::derivatives
