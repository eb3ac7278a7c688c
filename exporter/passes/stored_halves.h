// Weights that a model stores in f16 or bf16 and widens for a product or a look-up. Internal.
#pragma once
#include "taper/exporter/ir/graph.h"

namespace taper::passes {

/// Whether a node widens a constant of halves to f32, and a product or a look-up reads the result.
/// `read_stored_halves` takes care of such a node, so it must not be folded. `exact`: not for bf16,
/// beside which some kernels round the other operand to bf16.
bool widens_stored_weight(const ir::Node& node, bool exact);

}  // namespace taper::passes
