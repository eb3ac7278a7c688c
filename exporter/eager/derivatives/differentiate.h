#pragma once
#include <functional>
#include <vector>

#include "taper/exporter/eager/autograd.h"

namespace taper::eager::derivatives {

/// The derivative of `function` at `inputs`, by writing it out in differentiable operators and
/// walking that tape. For second derivatives, where a formula would be long and gain nothing.
///   wanted        whether the gradient of an input is wanted; its input must be defined then
///   gradients     of the function's results; undefined: none
Gradients differentiate(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
    const std::vector<Tensor>& inputs, const std::vector<bool>& wanted, const Gradients& gradients);

}  // namespace taper::eager::derivatives
