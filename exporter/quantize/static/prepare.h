// Brings a float graph into the form that calibration and quantization take.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/passes/folded_norms.h"

namespace taper::quantize {

/// Removes dead code, folds constants and batch norms, drops results that nobody uses, and brings
/// limits to the products before them (hoist_limits.h). The graph's weights are constants
/// (`bake_read_only_states`). Returns what stayed: a line for each batch norm that could not be
/// folded.
std::vector<std::string> prepare_static(ir::Graph& graph);

/// The same for training with the integers. Returns what went into the weights, so that the batch
/// norms train, too (QatOptions::norms).
std::vector<passes::FoldedNorm> prepare_qat(ir::Graph& graph);

}  // namespace taper::quantize
