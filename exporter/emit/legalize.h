// Adds the copies that a program needs, as `clone` nodes. Afterwards all results are dense.
#pragma once
#include "taper/exporter/ir/graph.h"
#include "taper/exporter/target/kernel_table.h"

namespace taper::emit {

/// Inserts a `clone`, in the graph and in its bodies,
///   - before a node whose kernels want a denser argument (one for all such users),
///   - before an output that is not dense, or that shows a state which this method overwrites,
///   - before a write whose source is not dense, or is itself a state,
///   - before a branch or loop, for operands that are not dense from the start of their storage,
///   - at the end of a loop's body, for values that move from one carried place to another.
/// It also drops writes of a state to itself. Returns the number of clones. Throws ExportError if a
/// node has no kernel.
int legalize(ir::Graph& graph, const target::KernelTable& kernels);

}  // namespace taper::emit
