#include "taper/exporter/exporter.h"

#include <algorithm>
#include <iostream>
#include <sstream>

#include "taper/exporter/emit/emit.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/io/tolerance.h"
#include "taper/exporter/ir/delegate.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/partition/partition.h"
#include "taper/exporter/passes/passes.h"

namespace taper {
namespace {

emit::EmitOptions emit_options(const ExportOptions& options, const std::string& name) {
  emit::EmitOptions e;
  e.target = options.target;
  e.name = options.name.empty() ? name : options.name;
  e.exact = options.exact && !options.dtype && options.backend.empty();
  e.dense = options.dense;
  e.debug = options.debug;
  e.weights = options.weights;
  e.sources = options.sources;
  e.slots = options.slots;
  return e;
}

void begin(const ExportOptions& options, const char* stage) {
  if (options.stage) options.stage(stage);
}

/// Partitions a graph, and notes what the backend got. Throws ExportError if it must get all.
std::function<int(ir::Graph&)> delegates_to(const ExportOptions& options,
                                            std::vector<std::string>& notes) {
  const partition::Delegate& delegate = partition::find_delegate(options.backend);
  return [&](ir::Graph& graph) {
    const partition::PartitionReport report =
        partition::partition(graph, delegate, options.each_node);
    std::ostringstream text;
    text << graph.name() << ": " << options.backend << " runs " << report;
    if (options.require_backend && report.left_count() > 0)
      throw ExportError(text.str() + "remedy: export without --require, or change these operators");
    std::istringstream lines(text.str());
    for (std::string line; std::getline(lines, line);) notes.push_back(line);
    return report.parts;
  };
}

/// Runs the graph on a test's inputs, and stores its results as those that the test expects.
void expect_results_of(const ir::Graph& graph, io::BundledTest& test) {
  const eager::NoGrad guard;
  std::vector<Tensor> inputs;
  for (const io::Array& a : test.inputs) inputs.push_back(eager::tensor_of(a));
  const ir::Interpretation result = ir::Interpreter(graph).run(inputs);
  for (size_t i = 0; i < test.outputs.size(); ++i)
    test.outputs[i] = eager::array_of(result.outputs[i]);
}

/// How far results may be from eager's on another processor, by the dtypes that the program
/// computes in, and those of its weights.
double tolerance_of(const ir::Graph& graph, const std::string& backend) {
  io::Tolerance tolerance;
  if (!backend.empty()) tolerance.add(partition::find_delegate(backend).rounds_to());
  ir::for_each_graph(graph, [&](const ir::Graph& g) {
    for (const ir::Constant& c : g.constants())
      if (c.payload->layout != Layout::dense) tolerance.add(ir::stored_dtype(*c.payload));
    for (const ir::Node& node : g.nodes()) {
      if (node.op == &ops::taper_block_linear_q8 || node.op == &ops::taper_grouped_block_linear_q8)
        tolerance.add(DType::i8);
      for (const auto& result : node.results)
        if (result != nullptr) tolerance.add(result->type.dtype);
    }
  });
  return tolerance.value();
}

}  // namespace

Exporter::Exporter() = default;
Exporter::~Exporter() = default;

void Exporter::add(const std::string& name, const Function& function,
                   const std::vector<InputSpec>& inputs, const std::vector<std::string>& outputs,
                   Location here) {
  for (const auto& graph : graphs_)
    if (graph->name() == name)
      throw EagerError(here, "export: there is a method called \"" + name + "\" already");
  graphs_.push_back(trace(name, function, inputs, outputs, here));
}

ir::Graph& Exporter::graph(const std::string& name) {
  for (const auto& graph : graphs_)
    if (graph->name() == name) return *graph;
  throw ExportError("export: there is no method called \"" + name + "\"");
}

void Exporter::test(const std::string& method, const std::vector<Tensor>& inputs,
                    const std::string& name) {
  const eager::NoGrad guard;
  const ir::Interpretation result = ir::Interpreter(graph(method)).run(inputs);
  io::BundledTest test{method, name, {}, {}};
  for (const Tensor& t : inputs) test.inputs.push_back(eager::array_of(t));
  for (const Tensor& t : result.outputs) {
    if (!t.defined()) throw ExportError("export: a test of " + method + ": an output is a number");
    test.outputs.push_back(eager::array_of(t));
  }
  tests_.push_back(std::move(test));
}

void Exporter::asset(io::Asset asset) {
  if (std::ranges::find(assets_, asset.name, &io::Asset::name) != assets_.end())
    throw ExportError("export: there is an asset called \"" + asset.name + "\" already");
  assets_.push_back(std::move(asset));
}

namespace {
/// A blob says nothing of the model's files if the program does not.
void forget_sources_in_delegates(ir::Graph& graph) {
  ir::for_each_own_graph(graph, [](ir::Graph& own) {
    for (ir::Node& node : own.nodes()) {
      if (!ir::is_delegate(node)) continue;
      ir::for_each_graph(*node.bodies[0], [](ir::Graph& body) {
        for (ir::Node& inner : body.nodes()) inner.location = {}, inner.module.clear();
      });
    }
  });
}
}  // namespace

void Exporter::run_passes(const ExportOptions& options, std::vector<std::string>& notes) {
  if (graphs_.empty()) throw ExportError("export: there is nothing to write; add a method first");
  if (written_) throw ExportError("export: an Exporter writes once; make another one");
  written_ = true;
  std::vector<ir::Graph*> graphs;
  for (const auto& graph : graphs_) graphs.push_back(graph.get());
  bake_read_only_states(graphs, options.slots);
  if (options.before_passes) {
    options.before_passes(graphs);
    for (io::BundledTest& test : tests_) expect_results_of(graph(test.method), test);
  }
  passes::PassContext context(options.target, options.exact, options.dtype);
  if (!options.backend.empty()) {
    context.group = [&options](ir::Graph& graph) {
      return partition::group(graph, partition::find_delegate(options.backend));
    };
    context.delegate = delegates_to(options, notes);
  }
  for (ir::Graph* graph : graphs) {
    passes::run_passes(*graph, context, options.after_pass);
    if (!options.debug) forget_sources_in_delegates(*graph);
  }
}

emit::EmitOptions Exporter::prepare(const ExportOptions& options, const std::string& name,
                                    std::vector<emit::Method>& methods,
                                    std::vector<std::string>& notes) {
  emit::EmitOptions e = emit_options(options, name);
  begin(options, "passes");
  run_passes(options, notes);
  for (const auto& graph : graphs_) methods.push_back({graph->name(), graph.get()});
  for (io::BundledTest& test : tests_) {
    test.relative_tolerance = tolerance_of(graph(test.method), options.backend);
    const bool reads_slot = std::ranges::any_of(options.slots, [&](const std::string& slot) {
      return graph(test.method).find_state(slot) != nullptr;
    });
    if (reads_slot)
      notes.push_back("no test of " + test.method + ": its slots have no elements yet");
    else if (test.size_bytes() <= options.test_bytes)
      e.tests.push_back(std::move(test));
    else
      notes.push_back("no test of " + test.method + ": its tensors take " +
                      io::bytes_text(test.size_bytes()) + ", more than " +
                      io::bytes_text(options.test_bytes));
  }
  tests_.clear();
  e.assets = std::move(assets_);
  e.writing = [&options] { begin(options, "writing"); };
  begin(options, "planning");
  return e;
}

emit::Report Exporter::write(const std::filesystem::path& path, const ExportOptions& options) {
  std::vector<emit::Method> methods;
  std::vector<std::string> notes;
  const emit::EmitOptions e = prepare(options, path.stem().string(), methods, notes);
  emit::Report report = emit::write(path.string(), methods, e);
  report.notes = notes;
  if (!options.quiet) std::cout << report;
  return report;
}

std::vector<std::byte> Exporter::write(const ExportOptions& options, emit::Report* report) {
  std::vector<emit::Method> methods;
  emit::Report own;
  emit::Report& filled = report != nullptr ? *report : own;
  const emit::EmitOptions e = prepare(options, "program", methods, filled.notes);
  return emit::write(methods, e, filled);
}

}  // namespace taper
