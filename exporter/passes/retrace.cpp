#include <set>

#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/passes/passes.h"
#include "taper/exporter/trace/trace.h"

namespace taper::passes {
namespace {

using eager::Tensor;

Tensor tensor_of(const ir::State& state) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < state.value->type.rank; ++i)
    sizes.push_back(state.value->type.sizes[i].value());
  Tensor tensor = Tensor::empty(sizes, state.value->type.dtype);
  if (state.initial != nullptr)
    tensor.copy_(ir::tensor_of(state.initial));
  else
    tensor.zero_();
  tensor.set_name(state.path);
  return tensor;
}

/// States that the old graph does not have are its constants, as the tracer saw them.
void restore_constants(ir::Graph& graph, std::set<std::string> paths) {
  for (auto at = graph.states().begin(); at != graph.states().end();) {
    ir::State& s = *at++;
    if (paths.contains(s.path)) continue;
    graph.replace_uses(s.value.get(), graph.add_constant(s.path, s.initial));
    graph.erase_state(&s);
  }
}

}  // namespace

std::unique_ptr<ir::Graph> retrace(const ir::Graph& graph) {
  std::vector<InputSpec> inputs;
  for (const ir::Input& in : graph.inputs()) {
    if (in.value == nullptr)
      throw ExportError(graph.name() + ": a graph with number inputs cannot be traced again");
    const ir::Type& t = in.value->type;
    inputs.push_back({in.name, {t.sizes, t.sizes + t.rank}, t.dtype});
  }
  std::vector<std::string> outputs;
  for (const ir::Output& o : graph.outputs()) outputs.push_back(o.name);

  ir::Interpreter interpreter(graph);
  std::map<std::string, Tensor> states;
  for (const ir::State& s : graph.states())
    interpreter.set_state(s.path, states[s.path] = tensor_of(s));
  auto traced = trace(
      graph.name(),
      [&](const std::vector<Tensor>& arguments) {
        ir::Interpretation result = interpreter.run(arguments);
        for (auto& [path, value] : result.written_states) states.at(path).copy_(value);
        return result.outputs;
      },
      inputs, outputs);

  std::set<std::string> paths;
  for (const ir::State& s : graph.states()) {
    paths.insert(s.path);
    if (ir::State* fresh = traced->find_state(s.path))
      fresh->kind = s.kind, fresh->trainable = s.trainable, fresh->initial = s.initial;
  }
  restore_constants(*traced, paths);
  return traced;
}

}  // namespace taper::passes
