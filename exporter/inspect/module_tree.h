// Groups the instructions of a method by the modules of the model, so that a picture can fold them.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/inspect/method_graph.h"

namespace taper::inspect {

/// One call of a module, or a part of a long list of operators.
struct ModuleGroup {
  int parent;         ///< -1: the whole method
  std::string title;  ///< "features.3"; "features.3 (2)": called again; "part 1 of 5"
  std::string path;   ///< "features.3"; for a part, that of its module; "" for the model
};

struct ModuleTree {
  std::vector<ModuleGroup>
      groups;  ///< parents before their children; the first is the whole method
  /// The graph's nodes in an order in which every edge leads forward and every group is contiguous.
  /// So folding any groups never makes a cycle.
  std::vector<int> order;
  std::vector<int> group_of;  ///< for each node, the innermost group
};

/// Module paths are split at dots. A group has at least two nodes, and at most 128 nodes and
/// groups: longer lists are divided into parts.
ModuleTree module_tree(const MethodGraph& graph);

}  // namespace taper::inspect
