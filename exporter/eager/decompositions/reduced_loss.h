// The reduction at the end of losses.
#pragma once
#include "taper/exporter/eager/tensor.h"

namespace taper::eager::decompositions {

/// The losses of the elements, their mean or their sum. Throws if `reduction` is none of the three.
/// The message begins with `name`, the operator.
Tensor reduced(const char* name, const Tensor& loss, int64_t reduction);

}  // namespace taper::eager::decompositions
