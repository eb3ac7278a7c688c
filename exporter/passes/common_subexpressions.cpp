#include <string>
#include <unordered_map>
#include <unordered_set>

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

/// Rows of blocks take little time to decode, and much memory to keep. A training decodes a large
/// weight by parts, again for each group of tokens.
std::unordered_set<const ir::Node*> decodings(const ir::Graph& graph) {
  std::unordered_set<const ir::Node*> found;
  for (const ir::Constant& c : graph.constants()) {
    if (!is_in_blocks(c.payload->layout)) continue;
    for (const ir::Node* user : c.value->users)
      if (user->op == &ops::embedding || user->op == &ops::taper_block_embedding)
        found.insert(user);
  }
  return found;
}

}  // namespace

int merge_common_subexpressions(ir::Graph& graph, PassContext&) {
  int merged = 0;
  std::unordered_map<std::string, ir::Node*> calls;
  const std::unordered_set<const ir::Node*> decoding = decodings(graph);
  for (auto at = graph.nodes().begin(); at != graph.nodes().end();) {
    ir::Node* node = &*at++;
    if (node->op->category == Category::check || decoding.contains(node)) continue;
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
