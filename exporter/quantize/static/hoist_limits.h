#pragma once
#include "taper/exporter/ir/graph.h"

namespace taper::quantize {

/// Brings a relu, or another limit, from behind a max pool to the product or sum in front of it.
/// There the limit costs nothing, and the integers of the product need not hold what the limit
/// drops. Exact, because limits keep the order of numbers. Returns how many it moved.
int hoist_limits(ir::Graph& graph);

}  // namespace taper::quantize
