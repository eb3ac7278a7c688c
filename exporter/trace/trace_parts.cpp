#include <unordered_map>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/dispatch.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/trace/trace.h"
#include "taper/exporter/trace/tracer.h"

namespace taper {
namespace {

/// What the parts took from outside is constant.
void bake_states(ir::Graph& graph, size_t from) {
  for (auto at = std::next(graph.states().begin(), static_cast<std::ptrdiff_t>(from));
       at != graph.states().end();) {
    ir::State& state = *at++;
    graph.replace_uses(state.value.get(), graph.add_constant(state.path, state.initial));
    graph.erase_state(&state);
  }
}

}  // namespace

std::vector<ir::Value*> trace_parts(ir::Graph& graph, const ir::Node& node) {
  const eager::OperatorInfo& info = eager::info_of(*node.op);
  Tracer tracer(graph);
  const eager::Recording recording(&tracer);
  const eager::NoGrad guard;
  const PlaceScope place(node.location);
  const eager::ModulePathScope modules(node.module);

  std::unordered_map<const ir::Value*, eager::Tensor> operands;
  ir::BoxedArguments arguments(info, node.arguments, [&](ir::Value* v) {
    const auto [at, is_new] = operands.try_emplace(v);
    if (is_new) at->second = tracer.stand_for(v);
    return at->second;
  });
  const size_t states = graph.states().size();
  const auto last = std::prev(graph.nodes().end());
  std::vector<eager::Tensor> results(node.results.size());
  eager::dispatch_in_parts(info, arguments.data(), results.data(), node.location);
  std::vector<ir::Value*> values;
  for (const eager::Tensor& t : results)
    values.push_back(t.defined() ? tracer.value_of(t, node.location) : nullptr);
  graph.nodes().splice(node.position, graph.nodes(), std::next(last), graph.nodes().end());
  bake_states(graph, states);
  return values;
}

}  // namespace taper
