#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/control_flow.h"
#include "taper/exporter/passes/passes.h"
#include "taper/exporter/trace/trace.h"

namespace taper::passes {
namespace {

bool is_to_take_apart(const ir::Node& node, const PassContext& context) {
  return !ir::is_control(node) && eager::info_of(*node.op).decomposition != nullptr &&
         !context.kernels.runs(node);
}

/// Updates the strides of a value's views after its own have changed. Returns false if a view is
/// not possible with these strides.
bool follow_layout(const ir::Value* value) try {
  for (const ir::Node* user : value->users) {
    if (user->op->category != Category::view || ir::viewed(*user) != value) continue;
    std::vector<Check> known;
    user->result()->type = ir::infer(*user->op, user->arguments, known).front();
    if (!follow_layout(user->result())) return false;
  }
  return true;
} catch (const ExportError&) {
  return false;
}

/// Replaces the dense result `whole` by `part`, which may be a view.
void replace(ir::Graph& graph, const ir::Node& node, ir::Value* whole, ir::Value* part) {
  if (part == nullptr || part->type.dtype != whole->type.dtype ||
      !ir::same_sizes(part->type, whole->type))
    throw ExportError(ir::describe(node) + ": its parts give " +
                      (part == nullptr ? "nothing" : ir::to_string(part->type)) + " for a result " +
                      ir::to_string(whole->type));
  const std::vector<ir::Node*> users = whole->users;
  graph.replace_uses(whole, part);
  if (part->node != nullptr && !part->named_by_user) graph.swap_names(whole, part);
  if (follow_layout(part)) return;
  ir::Value* dense =
      ir::insert_before(graph, &*node.position, ops::clone, {part}, node.location, node.module)
          ->result();
  for (ir::Node* user : users) graph.replace_uses_in(user, part, dense);
  follow_layout(dense);
}

}  // namespace

int decompose(ir::Graph& graph, PassContext& context) {
  int changes = 0;
  for (auto at = graph.nodes().begin(); at != graph.nodes().end();) {
    ir::Node& node = *at;
    if (!is_to_take_apart(node, context)) {
      ++at;
      continue;
    }
    const bool is_first = at == graph.nodes().begin();
    const auto before = is_first ? at : std::prev(at);
    const std::vector<ir::Value*> parts = trace_parts(graph, node);
    for (size_t i = 0; i < parts.size(); ++i)
      if (ir::Value* whole = node.result(i); whole != nullptr && graph.is_used(whole))
        replace(graph, node, whole, parts[i]);
    context.did(node, "is taken apart: the target has no kernel for it");
    // the new nodes may need decomposition, too
    at = is_first ? graph.nodes().begin() : std::next(before);
    if (&*at == &node) ++at;
    graph.erase(&node);
    ++changes;
  }
  return changes;
}

}  // namespace taper::passes
