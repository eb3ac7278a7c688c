#pragma once
#include <functional>
#include <vector>

#include "taper/exporter/eager/autograd.h"

namespace taper::eager::derivatives {

/// The derivative of `function` at `inputs`. Runs the function on a tape of its own and walks back.
/// For second derivatives, where a formula would be long and not faster.
///   wanted        whether the gradient of an input is wanted; that input must be defined
///   gradients     of the function's results; undefined: none
Gradients differentiate(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
    const std::vector<Tensor>& inputs, const std::vector<bool>& wanted, const Gradients& gradients);

}  // namespace taper::eager::derivatives
