#include "taper/exporter/trace/trace.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/ir/printer.h"
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

/// Throws for names that are empty or stand twice.
void check_names(const std::string& method, const char* what, const std::vector<std::string>& names,
                 Location here) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty())
      throw EagerError(here, "export of " + method + ": an " + what + " has an empty name");
    if (!seen.insert(name).second)
      throw EagerError(here, "export of " + method + ": two " + what + "s are called \"" + name +
                                 "\"; give each a name of its own");
  }
}

void check_inputs(const std::string& method, const std::vector<InputSpec>& inputs, Location here) {
  std::vector<std::string> names;
  std::map<std::string, const Symbol*> symbols;
  for (const InputSpec& input : inputs) {
    names.push_back(input.name);
    if (input.sizes.size() > static_cast<size_t>(max_rank))
      throw EagerError(here, "export of " + method + ": input \"" + input.name + "\" has " +
                                 std::to_string(input.sizes.size()) + " dimensions; at most " +
                                 std::to_string(max_rank) + " are possible");
    for (const Dim size : input.sizes) {
      if (size.is_constant() && size.value() < 0)
        throw EagerError(here, "export of " + method + ": input \"" + input.name +
                                   "\" has a size of " + size.to_string() +
                                   "; a size is 0 or more, or a Dim::symbol");
      const Symbol* const alone = size.as_symbol();
      if (alone != nullptr && alone->minimum < 0)
        throw EagerError(here, "export of " + method + ": input \"" + input.name +
                                   "\" has a size of " + alone->name + ", which may be " +
                                   std::to_string(alone->minimum) +
                                   "; give the symbol a minimum of 0 or more");
      for (const Symbol* s : size.symbols())
        if (const auto [at, fresh] = symbols.try_emplace(s->name, s); !fresh && at->second != s)
          throw EagerError(here, "export of " + method + ": two different symbols are called \"" +
                                     s->name +
                                     "\"; make the symbol once and use it twice, or give "
                                     "each a name of its own");
    }
  }
  check_names(method, "input", names, here);
}

using Function = std::function<std::vector<eager::Tensor>(const std::vector<eager::Tensor>&)>;

/// A function that counts, draws or remembers on the host would leave one moment's number in the
/// program: it is traced twice, and the graphs must be equal.
void check_repeats(const ir::Graph& first, const ir::Graph& second, Location here) {
  auto a = first.nodes().begin(), b = second.nodes().begin();
  for (; a != first.nodes().end() && b != second.nodes().end(); ++a, ++b) {
    const std::string was = ir::call_text(*a), is = ir::call_text(*b);
    if (was != is)
      throw EagerError(a->location.known() ? a->location : here,
                       "export of " + first.name() + ": the function was traced twice and did " +
                           was + ", then " + is +
                           ": a number that changes from call to call would become a constant of "
                           "the program; keep it in a named tensor (a state) or make it an input");
  }
  const auto outputs = [](const ir::Graph& graph) {
    std::string names;
    for (const ir::Output& output : graph.outputs()) names += output.value->name + " ";
    return names;
  };
  if (a != first.nodes().end() || b != second.nodes().end() || outputs(first) != outputs(second))
    throw EagerError(here,
                     "export of " + first.name() +
                         ": the function was traced twice and called different operators, or gave "
                         "its results in another order; it must do the same in every call");
  auto s = first.states().begin(), t = second.states().begin();
  for (; s != first.states().end() && t != second.states().end(); ++s, ++t)
    if (s->initial != nullptr && t->initial != nullptr && s->initial->bytes != t->initial->bytes &&
        ir::digest(*s->initial) != ir::digest(*t->initial))
      throw EagerError(here, "export of " + first.name() +
                                 ": the function was traced twice and made a tensor (\"" + s->path +
                                 "\") with other elements the second time; make it before the "
                                 "trace, or compute it with operators");
}

std::unique_ptr<ir::Graph> trace_once(const std::string& name, const Function& function,
                                      const std::vector<InputSpec>& inputs,
                                      const std::vector<std::string>& output_names, Location here) {
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
  if (!output_names.empty() && output_names.size() != outputs.size())
    throw EagerError(here, "export of " + name + ": " + std::to_string(output_names.size()) +
                               " output names are given, but the function gives " +
                               std::to_string(outputs.size()) + " tensors");
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
  if (outputs.empty() && graph->writes().empty())
    throw EagerError(here, "export of " + name +
                               ": the function gives no tensor and writes no state; there is "
                               "nothing to run");
  return graph;
}

/// "; it reads conv.weight, conv.bias, …"
std::string some_states(const std::vector<ir::Graph*>& graphs) {
  constexpr int shown = 6;
  std::string text;
  int count = 0;
  for (const ir::Graph* graph : graphs)
    for (const ir::State& s : graph->states())
      if (count++ < shown) text += (text.empty() ? "; it reads " : ", ") + s.path;
  return count > shown ? text + ", …" : text;
}

}  // namespace

std::unique_ptr<ir::Graph> trace(const std::string& name, const Function& function,
                                 const std::vector<InputSpec>& inputs,
                                 const std::vector<std::string>& output_names, Location here) {
  if (eager::recorder() != nullptr)
    throw EagerError(here, "export: a trace cannot run inside another trace");
  check_inputs(name, inputs, here);
  check_names(name, "output", output_names, here);
  auto graph = trace_once(name, function, inputs, output_names, here);
  check_repeats(*graph, *trace_once(name, function, inputs, output_names, here), here);
  return graph;
}

namespace {

/// A cache that one method fills and another one only reads is a cache in both.
void agree_on_caches(const std::vector<ir::Graph*>& graphs) {
  std::set<std::string> caches;
  for (const ir::Graph* graph : graphs)
    for (const ir::State& state : graph->states())
      if (state.kind == ir::StateKind::cache) caches.insert(state.path);
  for (ir::Graph* graph : graphs)
    for (ir::State& state : graph->states())
      if (caches.contains(state.path)) state.kind = ir::StateKind::cache, state.initial = nullptr;
}

}  // namespace

void bake_read_only_states(const std::vector<ir::Graph*>& graphs,
                           const std::vector<std::string>& slots) {
  agree_on_caches(graphs);
  std::set<std::string> written;
  for (const ir::Graph* graph : graphs)
    for (const ir::Write& write : graph->writes()) written.insert(write.state->path);
  for (const std::string& slot : slots) {
    if (written.contains(slot))
      throw ExportError("slot " + slot +
                        ": the model writes it, so it is a state of the session; Module::set_state "
                        "gives it a value");
    if (std::ranges::none_of(graphs, [&](ir::Graph* g) { return g->find_state(slot) != nullptr; }))
      throw ExportError("slot " + slot + ": the model reads no weight of this name outside of " +
                        "branches and loops" + some_states(graphs));
  }
  for (ir::Graph* graph : graphs) {
    for (auto at = graph->states().begin(); at != graph->states().end();) {
      ir::State& state = *at++;
      if (written.contains(state.path)) continue;
      if (std::ranges::count(slots, state.path) > 0) {
        state.kind = ir::StateKind::buffer;  // nobody trains it
        continue;
      }
      graph->replace_uses(state.value.get(), graph->add_constant(state.path, state.initial));
      graph->erase_state(&state);
    }
  }
}

}  // namespace taper
