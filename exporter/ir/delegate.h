// A part of a graph that a backend runs: a node whose body is the part.
#pragma once
#include "taper/exporter/ir/control_flow.h"

namespace taper::ir::ops {

/// results = bodies[0](operands), computed by the backend of this name. The body is closed, as that
/// of a loop: weights are its constants. So the interpreter runs it in eager.
inline constexpr Operator delegate{"delegate", Category::composite,
                                   "taper::delegate(str backend, Tensor[] operands) -> Tensor[]"};

}  // namespace taper::ir::ops

namespace taper::ir {

inline bool is_delegate(const Node& node) { return node.op == &ops::delegate; }

/// As `for_each_graph`, without the bodies of delegates: the program has no instructions for them.
template <class AnyGraph, class Visit>
void for_each_own_graph(AnyGraph& graph, Visit&& visit) {
  visit(graph);
  for (auto& node : graph.nodes())
    if (!is_delegate(node))
      for (auto& body : node.bodies) for_each_own_graph<AnyGraph>(*body, visit);
}

}  // namespace taper::ir
