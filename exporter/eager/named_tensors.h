#pragma once
#include <map>
#include <string>

#include "taper/exporter/eager/tensor.h"

namespace taper::eager {

/// The content of a safetensors file, and the state of a module or an optimizer.
using NamedTensors = std::map<std::string, Tensor>;

}  // namespace taper::eager
