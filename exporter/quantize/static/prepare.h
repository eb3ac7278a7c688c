// Brings a float graph into the form that calibration and quantization take.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/ir/graph.h"

namespace taper::quantize {

/// Removes dead code, folds constants and batch norms, drops results that nobody uses, and brings
/// limits to the products before them (hoist_limits.h). The graph's weights are constants
/// (`bake_read_only_states`). Returns what stayed: a line for each batch norm that could not be
/// folded.
std::vector<std::string> prepare_static(ir::Graph& graph);

}  // namespace taper::quantize
