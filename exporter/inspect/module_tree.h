// The instructions of a method as the model's modules hold them: what can be folded in a picture.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/inspect/method_graph.h"

namespace taper::inspect {

/// One call of a module, or a part of a long list of operators.
struct ModuleGroup {
  int parent;         ///< -1: the whole method
  std::string title;  ///< "features.3"; "features.3 (2)": called again; "part 1 of 5"
  std::string path;   ///< "features.3"; of a part that of the module around it; "" of the model
};

struct ModuleTree {
  std::vector<ModuleGroup>
      groups;  ///< parents before their children; the first is the whole method
  /// The graph's nodes so that every edge leads forward and every group is a part of the list
  /// without gaps. So folding groups never closes a circle, whichever are folded.
  std::vector<int> order;
  std::vector<int> group_of;  ///< beside the graph's nodes: the innermost one
};

/// Module paths are taken apart at dots. A group holds at least two nodes, and at most 128 nodes
/// and groups: longer lists are cut into parts.
ModuleTree module_tree(const MethodGraph& graph);

}  // namespace taper::inspect
