// Normalisation: y = (x - mean) / sqrt(var + eps) * weight + bias. Each function below says over
// which elements the mean and the (biased) variance are taken. The result has the sizes and the
// dtype of `input`, which is floating. f16 and bf16 are computed in f32; their weights and
// statistics may be f32. `weight` (1), `bias` (0) and the statistics may be left out. Errors: sizes
// that do not fit the input's.
#pragma once
#include <optional>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// Over the batch and all positions of each channel of (batch, channels, …). Training uses the
/// batch's own statistics and moves the running statistics towards them in place, by `momentum`.
/// Evaluation uses the running statistics. Weight, bias and both statistics are (channels). Ioffe
/// and Szegedy, arXiv:1502.03167.
inline Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                         const Tensor& running_mean, const Tensor& running_var, bool training,
                         double momentum = 0.1, double eps = 1e-5,
                         Location here = Location::current()) {
  return call<ops::batch_norm>(here, input, weight, bias, running_mean, running_var, training,
                               momentum, eps, false);
}
/// Over the last dimensions, whose extents are `normalized_shape`; weight and bias have that shape.
/// Ba et al., arXiv:1607.06450.
inline Tensor layer_norm(const Tensor& input, const Dims& normalized_shape,
                         const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5,
                         Location here = Location::current()) {
  return call<ops::layer_norm>(here, input, normalized_shape, weight, bias, eps, false);
}
/// Over each of `num_groups` groups of channels of each image of (batch, channels, …). `num_groups`
/// must divide channels. weight and bias are (channels). Wu and He, arXiv:1803.08494.
inline Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight = {},
                         const Tensor& bias = {}, double eps = 1e-5,
                         Location here = Location::current()) {
  return call<ops::group_norm>(here, input, num_groups, weight, bias, eps, false);
}
/// Over the positions of each channel of each image of (batch, channels, …): like `batch_norm` of
/// each image alone. Ulyanov et al., arXiv:1607.08022.
inline Tensor instance_norm(const Tensor& input, const Tensor& weight = {}, const Tensor& bias = {},
                            const Tensor& running_mean = {}, const Tensor& running_var = {},
                            bool use_input_stats = true, double momentum = 0.1, double eps = 1e-5,
                            Location here = Location::current()) {
  return call<ops::instance_norm>(here, input, weight, bias, running_mean, running_var,
                                  use_input_stats, momentum, eps, false);
}
/// x / sqrt(mean(x²) + eps) * weight over the last dimensions, whose extents are
/// `normalized_shape`. Without `eps`: the dtype's machine epsilon. Zhang and Sennrich,
/// arXiv:1910.07467.
inline Tensor rms_norm(const Tensor& input, const Dims& normalized_shape, const Tensor& weight = {},
                       std::optional<double> eps = {}, Location here = Location::current()) {
  return call<ops::rms_norm>(here, input, normalized_shape, weight, eps);
}

/// v g / |v|, where |v| is the length of each slice of v along dim; -1 takes the length of the
/// whole v. g has the sizes of these lengths. Salimans and Kingma, arXiv:1602.07868.
inline Tensor weight_norm(const Tensor& v, const Tensor& g, int64_t dim = 0,
                          Location here = Location::current()) {
  return call<ops::_weight_norm>(here, v, g, dim);
}

}  // namespace taper::eager
