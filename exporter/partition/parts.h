// The parts of a graph that a delegate could run. Internal to partition.
#pragma once
#include <functional>
#include <vector>

#include "taper/exporter/ir/graph.h"

namespace taper::partition {

using Part = std::vector<ir::Node*>;  ///< in the order of the graph

/// Connected sets of the nodes that `takes` accepts. They are as large as they can be without a
/// path that leaves a set and comes back. Sets of views alone are left out.
std::vector<Part> find_parts(ir::Graph& graph, const std::function<bool(const ir::Node&)>& takes);

/// Replaces the nodes of a part by one delegate. A view that other nodes need, too, stays beside
/// it.
/// Views of constants that `takes` accepts are copied into it, so that they are constants there.
void replace_part(ir::Graph& graph, const Part& part, const std::string& backend,
                  const std::function<bool(const ir::Node&)>& takes);

/// Gives constants that branches and loops have as operands to their bodies, where a delegate needs
/// weights. The inputs of the bodies stay, without a use.
void give_constants_to_bodies(ir::Graph& graph);

}  // namespace taper::partition
