#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {
namespace {

bool has_unused_indices(const ir::Graph& graph, const ir::Node& node) {
  return node.op == &ops::max_pool2d_with_indices && node.result(0) != nullptr &&
         (node.result(1) == nullptr || !graph.is_used(node.result(1)));
}

}  // namespace

int drop_unused_results(ir::Graph& graph, PassContext& context) {
  int changes = 0;
  for (auto at = graph.nodes().begin(); at != graph.nodes().end();) {
    ir::Node* node = &*at++;
    if (!has_unused_indices(graph, *node)) continue;
    ir::Node* values = ir::insert_before(graph, node, ops::max_pool2d, node->arguments,
                                         node->location, node->module);
    if (!context.kernels.runs(*values)) {
      graph.erase(values);
      context.declined(*node, "the target has no kernel for max_pool2d of this dtype");
      continue;
    }
    graph.replace_uses(node->result(), values->result());
    graph.swap_names(node->result(), values->result());
    context.did(*values, "computes no indices now, nobody uses them");
    graph.erase(node);
    ++changes;
  }
  return changes;
}

}  // namespace taper::passes
