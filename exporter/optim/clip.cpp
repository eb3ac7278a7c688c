#include <cmath>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/reduction.h"
#include "taper/exporter/optim/optimizer.h"

namespace taper::optim {
namespace {

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters)
    if (const Tensor gradient = parameter.grad(); gradient.defined()) gradients.push_back(gradient);
  return gradients;
}

/// The part of one gradient in the norm: its greatest magnitude, or the sum of the powers of its
/// magnitudes, in f32 at least.
Tensor share_of(Tensor gradient, double norm_type, Location here) {
  if (is_half(gradient.dtype())) gradient = gradient.to(DType::f32, here);
  if (norm_type == 2) return eager::sum(eager::mul(gradient, gradient, here), std::nullopt, here);
  const Tensor magnitude = eager::abs(gradient, here);
  if (std::isinf(norm_type)) return eager::amax(magnitude, {}, false, here);
  return eager::sum(norm_type == 1 ? magnitude : eager::pow(magnitude, Scalar(norm_type), here),
                    std::nullopt, here);
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       Location here) {
  if (!(norm_type > 0))
    throw EagerError(
        here, "clip_grad_norm_: norm_type " + std::to_string(norm_type) + " is not positive");
  eager::NoGrad guard;
  Tensor norm;
  for (const Tensor& gradient : gradients_of(parameters)) {
    const Tensor share = share_of(gradient, norm_type, here);
    norm = !norm.defined()         ? share
           : std::isinf(norm_type) ? eager::maximum(norm, share, here)
                                   : eager::add(norm, share, Scalar(1), here);
  }
  if (!norm.defined()) return eager::full({}, Scalar(0), DType::f32, here);
  if (norm_type == 2)
    norm = eager::sqrt(norm, here);
  else if (!std::isinf(norm_type) && norm_type != 1)
    norm = eager::pow(norm, Scalar(1 / norm_type), here);
  // The small number keeps a zero norm from dividing; a factor above 1 would grow the gradients.
  const Tensor factor = eager::clamp_max(
      eager::mul(eager::reciprocal(eager::add(norm, Scalar(1e-6), Scalar(1), here), here),
                 Scalar(max_norm), here),
      Scalar(1), here);
  for (Tensor gradient : gradients_of(parameters)) gradient.mul_(factor, here);
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value, Location here) {
  eager::NoGrad guard;
  for (Tensor gradient : gradients_of(parameters))
    eager::clamp_(gradient, Scalar(-clip_value), Scalar(clip_value), here);
}

}  // namespace taper::optim
