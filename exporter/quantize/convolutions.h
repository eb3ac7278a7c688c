// What GPTQ learns of convolutions whose weights are widened. Internal.
#pragma once
#include <functional>
#include <vector>

#include "taper/exporter/quantize/calibration.h"

namespace taper::quantize {

/// The Hessians of convolutions by the values of their weights. `weights` are of the graph. Those
/// that something else reads, and those of convolutions with groups, are left out.
Hessians hessians_of_convolutions(const ir::Graph& graph, const Examples& samples,
                                  const std::vector<const ir::Constant*>& weights);

}  // namespace taper::quantize
