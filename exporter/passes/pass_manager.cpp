#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {

const std::vector<Pass>& default_passes() {
  static const std::vector<Pass> passes = {
      {"remove_dead_code", true, remove_dead_code},
      {"fold_constants", true, fold_constants},
      {"merge_common_subexpressions", true, merge_common_subexpressions},
      {"fold_batch_norm", false, fold_batch_norm},
      {"remove_dead_code", true, remove_dead_code},
      {"fuse_pointwise", true, fuse_pointwise},
      {"remove_dead_code", true, remove_dead_code},
  };
  return passes;
}

namespace {
/// Over a graph and the bodies in it.
int run(const Pass& pass, ir::Graph& graph) {
  int changes = 0;
  ir::for_each_graph(graph, [&](ir::Graph& g) { changes += pass.run(g); });
  return changes;
}
}  // namespace

std::vector<PassResult> run_passes(ir::Graph& graph, bool exact, const std::vector<Pass>& passes) {
  std::vector<PassResult> results;
  for (const Pass& pass : passes) {
    if (exact && !pass.exact) continue;
    results.push_back({pass.name, run(pass, graph)});
#ifndef NDEBUG
    ir::verify(graph, pass.name);
#endif
  }
  return results;
}

}  // namespace taper::passes
