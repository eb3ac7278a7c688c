#include "taper/exporter/trace/trace.h"

#include <set>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/trace/tracer.h"

namespace taper {
namespace {

/// Symbols get their values from the inputs' extents: the first place where each stands alone.
void bind_symbols(ir::Graph& graph, const std::vector<InputSpec>& inputs, Location here) {
  std::set<const Symbol*> bound, used;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t k = 0; k < inputs[i].sizes.size(); ++k) {
      const Dim d = inputs[i].sizes[k];
      for (const Symbol* s : d.symbols()) used.insert(s);
      if (const Symbol* s = d.as_symbol(); s && bound.insert(s).second)
        graph.bind_symbol(
            {d, ir::SymbolSource::input_extent, static_cast<int>(i), static_cast<int>(k), nullptr});
    }
  for (const Symbol* s : used)
    if (!bound.contains(s))
      throw EagerError(here, "export: symbol " + s->name +
                                 " occurs in input sizes only inside expressions; one input must "
                                 "have it as a plain size");
}

}  // namespace

std::unique_ptr<ir::Graph> trace(
    const std::string& name,
    const std::function<std::vector<eager::Tensor>(const std::vector<eager::Tensor>&)>& function,
    const std::vector<InputSpec>& inputs, const std::vector<std::string>& output_names,
    Location here) {
  if (eager::recorder() != nullptr)
    throw EagerError(here, "export: a trace cannot run inside another trace");
  auto graph = std::make_unique<ir::Graph>(name);
  Tracer tracer(*graph);
  eager::Recording recording(&tracer);
  std::vector<eager::Tensor> arguments;
  for (const InputSpec& spec : inputs)
    arguments.push_back(tracer.add_input(spec.name, spec.sizes, spec.dtype));
  bind_symbols(*graph, inputs, here);

  std::vector<eager::Tensor> outputs;
  try {
    outputs = function(arguments);
  } catch (const EagerError&) {
    throw;
  } catch (const ExportError& e) {  // an expression over sizes has no line of its own
    throw EagerError(
        here, "export of " + name + ": " + e.what() +
                  (tracer.last().known() ? " (after " + tracer.last().to_string() + ")" : ""));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined())
      throw EagerError(
          here, "export of " + name + ": output " + std::to_string(i) + " is an undefined tensor");
    const std::string output = i < output_names.size() ? output_names[i]
                               : outputs.size() == 1   ? "output"
                                                       : "output" + std::to_string(i);
    graph->add_output(output, tracer.value_of(outputs[i], here));
  }
  tracer.finish();
  return graph;
}

void bake_read_only_states(const std::vector<ir::Graph*>& graphs) {
  std::set<std::string> written;
  for (const ir::Graph* graph : graphs)
    for (const ir::Write& write : graph->writes()) written.insert(write.state->path);
  for (ir::Graph* graph : graphs) {
    for (auto at = graph->states().begin(); at != graph->states().end();) {
      ir::State& state = *at++;
      if (written.contains(state.path)) continue;
      graph->replace_uses(state.value.get(), graph->add_constant(state.path, state.initial));
      graph->erase_state(&state);
    }
  }
}

}  // namespace taper
