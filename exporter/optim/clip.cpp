#include <cmath>

#include "taper/exporter/eager/eager.h"
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
Tensor share_of(Tensor gradient, double norm_type) {
  if (is_half(gradient.dtype())) gradient = gradient.to(DType::f32);
  if (norm_type == 2) return eager::sum(gradient * gradient);
  const Tensor magnitude = eager::abs(gradient);
  if (std::isinf(norm_type)) return eager::amax(magnitude, {});
  return eager::sum(norm_type == 1 ? magnitude : eager::pow(magnitude, norm_type));
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       Location here) {
  if (!(norm_type > 0))
    throw EagerError(
        here, "clip_grad_norm_: norm_type " + std::to_string(norm_type) + " is not positive");
  const PlaceScope scope(here);
  eager::NoGrad guard;
  Tensor norm;
  for (const Tensor& gradient : gradients_of(parameters)) {
    const Tensor share = share_of(gradient, norm_type);
    norm = !norm.defined()         ? share
           : std::isinf(norm_type) ? eager::maximum(norm, share)
                                   : norm + share;
  }
  if (!norm.defined()) return eager::full({}, 0, DType::f32);
  if (norm_type == 2)
    norm = eager::sqrt(norm);
  else if (!std::isinf(norm_type) && norm_type != 1)
    norm = eager::pow(norm, 1 / norm_type);
  // The small number keeps a zero norm from dividing; a factor above 1 would grow the gradients.
  const Tensor factor = eager::clamp_max(eager::reciprocal(norm + 1e-6) * max_norm, 1);
  for (Tensor gradient : gradients_of(parameters)) gradient.mul_(factor);
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value, Location here) {
  const PlaceScope scope(here);
  eager::NoGrad guard;
  for (Tensor gradient : gradients_of(parameters)) eager::clamp_(gradient, -clip_value, clip_value);
}

}  // namespace taper::optim
