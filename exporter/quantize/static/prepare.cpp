#include "taper/exporter/quantize/static/prepare.h"

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/passes/passes.h"
#include "taper/exporter/passes/replace.h"
#include "taper/exporter/quantize/static/hoist_limits.h"

namespace taper::quantize {
namespace {

/// Some models write relu as a leaky_relu that does not leak. As a relu it joins the node before
/// it.
void make_relus(ir::Graph& graph) {
  for (auto at = graph.nodes().begin(); at != graph.nodes().end();) {
    ir::Node& node = *at++;
    if (node.op != &ops::leaky_relu) continue;
    const ir::Call<ops::leaky_relu> call(node);
    const Scalar* slope = call.get<"negative_slope">();
    if (slope == nullptr || slope->to<double>() != 0) continue;
    const ir::Node* relu = ir::insert_before(graph, &node, ops::relu, {call.get<"self">()},
                                             node.location, node.module);
    passes::take_place_of(graph, node.result(), relu->result());
    graph.erase(&node);
  }
}

struct Prepared {
  std::vector<passes::FoldedNorm> norms;
  std::vector<std::string> left;  ///< a line for each batch norm that stays
};
Prepared prepare(ir::Graph& graph) {
  passes::PassContext context({}, /*exact=*/false);
  passes::remove_dead_code(graph, context);
  passes::fold_constants(graph, context);
  passes::drop_unused_results(graph, context);
  context.take_notes();
  Prepared p{passes::fold_batch_norms(graph, context), {}};
  for (const passes::Note& note : context.take_notes())
    if (note.declined) p.left.push_back(note.node + " stays: " + note.text);
  make_relus(graph);
  hoist_limits(graph);
  passes::remove_dead_code(graph, context);
  return p;
}

}  // namespace

std::vector<std::string> prepare_static(ir::Graph& graph) { return prepare(graph).left; }
std::vector<passes::FoldedNorm> prepare_qat(ir::Graph& graph) { return prepare(graph).norms; }

}  // namespace taper::quantize
