// Weights of branches and loops. The bodies get them as operands.
#include <algorithm>

#include "taper/exporter/ir/delegate.h"
#include "taper/exporter/partition/parts.h"

namespace taper::partition {
namespace {

/// The operands of a loop that its rounds change.
size_t carried(const ir::Node& node) {
  return node.op == &ir::ops::while_loop ? node.results.size() : 0;
}

void give_constants(const ir::Graph& graph, ir::Node& node) {
  const std::vector<ir::Value*> operands = ir::operands_of(node);
  for (size_t i = carried(node); i < operands.size(); ++i) {
    const auto constant = std::ranges::find_if(
        graph.constants(), [&](const ir::Constant& c) { return c.value.get() == operands[i]; });
    if (constant == graph.constants().end()) continue;
    for (const auto& body : node.bodies) {
      ir::Value* input = body->inputs()[i].value.get();
      if (!body->is_used(input)) continue;
      body->replace_uses(input, body->add_constant(constant->path, constant->payload));
    }
  }
}

}  // namespace

void give_constants_to_bodies(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes())
    if (ir::is_control(node) && !ir::is_delegate(node)) give_constants(graph, node);
}

}  // namespace taper::partition
