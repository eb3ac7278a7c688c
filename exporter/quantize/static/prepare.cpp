#include "taper/exporter/quantize/static/prepare.h"

#include "taper/exporter/passes/passes.h"
#include "taper/exporter/quantize/static/hoist_limits.h"

namespace taper::quantize {

std::vector<std::string> prepare_static(ir::Graph& graph) {
  passes::PassContext context({}, /*exact=*/false);
  passes::remove_dead_code(graph, context);
  passes::fold_constants(graph, context);
  passes::drop_unused_results(graph, context);
  context.take_notes();
  passes::fold_batch_norm(graph, context);
  std::vector<std::string> left;
  for (const passes::Note& note : context.take_notes())
    if (note.declined) left.push_back(note.node + " stays: " + note.text);
  hoist_limits(graph);
  passes::remove_dead_code(graph, context);
  return left;
}

}  // namespace taper::quantize
