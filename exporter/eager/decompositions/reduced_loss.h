// What losses end with.
#pragma once
#include "taper/exporter/eager/tensor.h"

namespace taper::eager::decompositions {

/// The elements' losses, their mean or their sum. Throws, in the name of the operator `name`, if
/// `reduction` is none of the three.
Tensor reduced(const char* name, const Tensor& loss, int64_t reduction);

}  // namespace taper::eager::decompositions
