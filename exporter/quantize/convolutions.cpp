#include "taper/exporter/quantize/convolutions.h"

#include <algorithm>
#include <utility>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/quantize/prune_layers.h"
#include "taper/exporter/quantize/static/run_examples.h"

namespace taper::quantize {
namespace {

/// A convolution that reads a weight.
struct Filter {
  const ir::Constant* weight;
  const ir::Node* node;
};
using Filters = std::multimap<const ir::Value*, Filter>;  // by their inputs

bool has_groups(const ir::Node& convolution) {
  return ir::Call<ops::convolution>(convolution).get<"groups">().value() != 1;
}

Filters filters_of(const std::vector<const ir::Constant*>& weights) {
  Filters filters;
  for (const ir::Constant* weight : weights) {
    const std::vector<PrunedLayer::Use> uses = convolutions_of(weight->value.get());
    if (std::ranges::any_of(uses, has_groups,
                            [](const auto& use) -> const ir::Node& { return *use.node; }))
      continue;
    for (const PrunedLayer::Use& use : uses) filters.emplace(use.input, Filter{weight, use.node});
  }
  return filters;
}

}  // namespace

Hessians hessians_of_convolutions(const ir::Graph& graph, const Examples& samples,
                                  const std::vector<const ir::Constant*>& weights) {
  const Filters filters = filters_of(weights);
  Hessians hessians;
  for (size_t i = 0; i < samples.count && !filters.empty(); ++i)
    run_example(graph, samples, i, [&](const ir::Value& v, const eager::Tensor& x) {
      const eager::NoGrad guard;
      for (auto [at, end] = filters.equal_range(&v); at != end; ++at) {
        const auto& [weight, node] = at->second;
        const eager::Tensor rows = patches_of(*node, weight->payload->sizes, x);
        std::vector<std::shared_ptr<Hessian>>& parts = hessians[{weight->value.get()}];
        if (parts.empty()) parts.push_back(std::make_shared<Hessian>(rows.size(1).value()));
        add_rows(*parts[0], rows, v.name);
      }
    });
  return hessians;
}

}  // namespace taper::quantize
