// Concatenations without an instruction.
#pragma once
#include <unordered_set>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/target/kernel_table.h"

namespace taper::emit {

/// Lets tensors lie in the result of the `cat` that puts them side by side along the last
/// dimension, where their kernels can write rows that lie apart. They get the strides and the
/// offset that they have there. The nodes that are returned need no step: all that they would copy
/// lies in place. No bit of any result changes.
///
/// Every tensor must be made by a kernel, must appear once, and must be read only by kernels that
/// take it as it lies there.
std::unordered_set<const ir::Node*> write_into_place(ir::Graph& graph,
                                                     const target::KernelTable& kernels);

}  // namespace taper::emit
