#include <string>
#include <unordered_map>

#include "taper/exporter/eager/checkpoint.h"
#include "taper/exporter/ir/printer.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {

namespace {

/// Equal calls have equal texts; names of values and symbols are unique in a graph. A checkpoint
/// computes values again so that the first ones need not be kept. Such a call is merged only with
/// others of the same module and run.
std::string text_of(const ir::Node& node) {
  std::string text = ir::call_text(node);
  if (eager::is_computed_again(node.module)) text += " in " + node.module;
  return text;
}

}  // namespace

int merge_common_subexpressions(ir::Graph& graph, PassContext&) {
  int merged = 0;
  std::unordered_map<std::string, ir::Node*> calls;
  for (auto at = graph.nodes().begin(); at != graph.nodes().end();) {
    ir::Node* node = &*at++;
    if (node->op->category == Category::check) continue;
    const auto [first, is_new] = calls.try_emplace(text_of(*node), node);
    if (is_new) continue;
    for (size_t i = 0; i < node->results.size(); ++i)
      if (node->result(i) != nullptr) graph.replace_uses(node->result(i), first->second->result(i));
    graph.erase(node);
    ++merged;
  }
  return merged;
}

}  // namespace taper::passes
