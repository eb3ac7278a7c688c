// A method as boxes and lines: what `taper inspect --graph` draws.
#pragma once
#include <string>
#include <vector>

#include "taper/runtime/program/program.h"

namespace taper::inspect {

struct GraphNode {
  enum class Kind { input, output, instruction, delegated };
  Kind kind;
  std::string title;               ///< "convolution", a backend, or the name of an input or output
  std::vector<std::string> types;  ///< types of its results
  std::vector<std::string> lines;  ///< weights that it reads, states that it writes
  std::string source;              ///< "lenet.cpp:14", or ""
  std::string module;              ///< "features.3.conv", or ""
};

/// `to` reads memory that `from` wrote last, or may have written last: the writer can be either
/// side of a branch, or a node before a loop that runs no round. `from` comes before `to` in the
/// list of nodes. Data that passes from one round of a loop to the next is left out.
struct GraphEdge {
  int from, to;
  std::vector<std::string> types;  ///< types of what `to` reads
};

struct MethodGraph {
  std::string name;
  std::vector<GraphNode> nodes;  ///< inputs, instructions in their order, outputs
  std::vector<GraphEdge> edges;  ///< each once
  /// Edges without types show control. They lead from a jump or a loop's beginning to each node
  /// that depends on it, unless another edge leads to that node. They lead to the end of a loop,
  /// and from the node that reads a condition to the jump that uses it.
  std::vector<GraphEdge> control;
};

/// Constants and states are not nodes, because most lines would end there. The nodes that use them
/// name them.
MethodGraph method_graph(const Program& program, index_t method);

}  // namespace taper::inspect
