#include <algorithm>
#include <ostream>

#include "taper/exporter/io/format_text.h"
#include "taper/exporter/ir/delegate.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {

const std::vector<Pass>& all_passes() {
  using enum Pass::Runs;
  static const std::vector<Pass> passes = {
      {"remove_dead_code", always, remove_dead_code},
      // other passes read the bytes of constants
      {"read_blocks", always, read_blocks},
      // weights are integers still
      {"group_for_backend", for_backend, group_for_backend},
      {"fuse_quantized", unless_exact, fuse_quantized},
      {"fold_constants", always, fold_constants},
      {"drop_unused_results", always, drop_unused_results},
      {"fold_batch_norm", unless_exact, fold_batch_norm},
      {"fuse_rms_norm", always, fuse_rms_norm},
      {"fuse_rotary_embedding", always, fuse_rotary_embedding},
      {"fuse_attention", unless_exact, fuse_attention},
      {"constant_masks", unless_exact, constant_masks},
      {"group_heads", always, group_heads},
      {"heads_last", always, heads_last},
      // what matches whole operators stands above
      {"decompose", always, decompose},
      {"fold_constants", always, fold_constants},
      {"read_stored_halves", always, read_stored_halves},
      {"merge_common_subexpressions", always, merge_common_subexpressions},
      {"delegate", for_backend, delegate},
      {"channels_last", always, channels_last},
      {"fuse_pointwise", always, fuse_pointwise},
      {"winograd", unless_exact, winograd},
      // constants were folded in f32, and are rounded once
      {"halve_weights", for_dtype, halve_weights},
  };
  return passes;
}

int group_for_backend(ir::Graph& graph, PassContext& context) { return context.group(graph); }
int delegate(ir::Graph& graph, PassContext& context) { return context.delegate(graph); }

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : all_passes())
    if (std::ranges::find(names, pass.name) == names.end()) names.emplace_back(pass.name);
  return names;
}

namespace {
bool is_asked_for(const Pass& pass, const PassContext& context) {
  switch (pass.runs) {
    case Pass::Runs::unless_exact:
      return !context.exact;
    case Pass::Runs::for_dtype:
      return context.dtype.has_value();
    case Pass::Runs::for_backend:
      return context.delegate != nullptr;
    default:
      return true;
  }
}
}  // namespace

std::vector<PassResult> run_passes(ir::Graph& graph, PassContext& context, const AfterPass& after) {
  std::vector<PassResult> results;
  for (const Pass& pass : all_passes()) {
    if (!is_asked_for(pass, context)) continue;
    PassResult result{pass.name};
    ir::for_each_own_graph(graph, [&](ir::Graph& g) { result.changes += pass.run(g, context); });
    result.notes = context.take_notes();
#ifndef NDEBUG
    ir::verify(graph, pass.name);
#endif
    if (after) after(result, graph);
    results.push_back(std::move(result));
  }
  return results;
}

std::ostream& operator<<(std::ostream& out, const PassResult& result) {
  out << "# after " << result.name << ": " << io::counted(result.changes, "change") << '\n';
  for (const Note& n : result.notes)
    out << "#   " << (n.declined ? "left " : "") << n.node << ": " << n.text << '\n';
  return out;
}

}  // namespace taper::passes
