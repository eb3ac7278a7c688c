#include "taper/exporter/eager/derivatives/differentiate.h"

#include "taper/exporter/eager/call.h"

namespace taper::eager::derivatives {

Gradients differentiate(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
    const std::vector<Tensor>& inputs, const std::vector<bool>& wanted,
    const Gradients& gradients) {
  const bool again = grad_enabled();
  NoGrad enabled(true);
  // The walk ends at aliases. So the inputs' own histories, in which one input may lead to another,
  // are not part of the function.
  std::vector<Tensor> own, targets;
  for (size_t i = 0; i < inputs.size(); ++i) {
    own.push_back(inputs[i].defined() ? call<ops::alias>(inputs[i]) : Tensor());
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
                                         /*retain_graph=*/true, /*allow_unused=*/true);
  for (size_t i = 0, t = 0; i < inputs.size(); ++i)
    if (wanted[i]) all[i] = found[t++];
  return all;
}

}  // namespace taper::eager::derivatives
