#include <string>
#include <unordered_map>

#include "taper/exporter/ir/printer.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {

int merge_common_subexpressions(ir::Graph& graph, PassContext&) {
  int merged = 0;
  std::unordered_map<std::string, ir::Node*>
      calls;  // by text; names of values and symbols are unique in a graph
  for (auto at = graph.nodes().begin(); at != graph.nodes().end();) {
    ir::Node* node = &*at++;
    if (node->op->category == Category::check) continue;
    const auto [first, is_new] = calls.try_emplace(ir::call_text(*node), node);
    if (is_new) continue;
    for (size_t i = 0; i < node->results.size(); ++i)
      if (node->result(i) != nullptr) graph.replace_uses(node->result(i), first->second->result(i));
    graph.erase(node);
    ++merged;
  }
  return merged;
}

}  // namespace taper::passes
