#pragma once
#include <map>
#include <string>

#include "taper/exporter/eager/tensor.h"

namespace taper::eager {

/// What a safetensors file holds, and the state of a module or an optimizer.
using NamedTensors = std::map<std::string, Tensor>;

}  // namespace taper::eager
