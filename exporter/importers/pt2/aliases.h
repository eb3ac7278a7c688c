// PyTorch has several names for some operators. Files hold the name that the model called.
#pragma once
#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// If a call uses another name of an operator ("torch.ops.aten.arccos.default"), gives the call the
/// main name and the main names of the arguments. Leaves other calls alone.
void resolve_alias(Node& node);

}  // namespace taper::pt2
