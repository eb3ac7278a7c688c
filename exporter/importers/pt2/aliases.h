// Operators that PyTorch has under several names: files hold the name that the model called.
#pragma once
#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// Gives a call of "torch.ops.aten.arccos.default" the name, and the arguments' names, of the
/// operator that it is another name of; leaves others alone.
void resolve_alias(Node& node);

}  // namespace taper::pt2
