// How much the nodes of a graph multiply.
#pragma once
#include "taper/exporter/ir/graph.h"

namespace taper::partition {

/// The multiplications, each with an addition, of a matrix product, a convolution or attention; 0
/// for other nodes. A symbolic size counts as its lower bound.
double multiply_adds(const ir::Node& node);

}  // namespace taper::partition
