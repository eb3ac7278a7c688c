#include <algorithm>

#include "taper/exporter/passes/passes.h"

namespace taper::passes {

int remove_dead_code(ir::Graph& graph, PassContext&) {
  int removed = 0;
  for (auto at = graph.nodes().end(); at != graph.nodes().begin();) {
    ir::Node& node = *--at;
    const bool used = std::ranges::any_of(
        node.results, [&](const auto& r) { return r != nullptr && graph.is_used(r.get()); });
    if (used || node.op->category == Category::check) continue;
    ++at;  // the iterator behind the node survives
    graph.erase(&node);
    ++removed;
  }
  graph.erase_unused_constants();
  return removed;
}

}  // namespace taper::passes
