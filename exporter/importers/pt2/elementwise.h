#pragma once
#include "taper/kernels/operators.h"

namespace taper::pt2 {

/// Whether each element of an operator's result depends on one element of each broadcast tensor.
bool is_elementwise(const Operator& op);

}  // namespace taper::pt2
