#include "taper/exporter/exporter.h"

#include <iostream>

#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/emit/emit.h"
#include "taper/exporter/passes/passes.h"
#include "taper/kernels/portable/portable.h"

namespace taper {
namespace {

emit::EmitOptions emit_options(const ExportOptions& options, const std::filesystem::path& path) {
  emit::EmitOptions e;
  if (options.portable)
    e.kernels.assign(portable::all.begin(), portable::all.end());
  else
    e.kernels = eager::all_kernels();
  const std::vector<const Kernel*> added = eager::added_kernels();
  e.kernels.insert(e.kernels.end(), added.begin(), added.end());
  e.kernel_sets = options.portable ? std::vector<std::string>{"portable"}
                                   : std::vector<std::string>{"optimized", "portable"};
  e.name = options.name.empty() ? path.stem().string() : options.name;
  e.exact = options.exact;
  e.debug = options.debug;
  return e;
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

void Exporter::run_passes(const ExportOptions& options) {
  if (graphs_.empty()) throw ExportError("export: there is nothing to write; add a method first");
  if (written_) throw ExportError("export: an Exporter writes once; make another one");
  written_ = true;
  std::vector<ir::Graph*> graphs;
  for (const auto& graph : graphs_) graphs.push_back(graph.get());
  bake_read_only_states(graphs);
  for (ir::Graph* graph : graphs) passes::run_passes(*graph, options.exact);
}

emit::Report Exporter::write(const std::filesystem::path& path, const ExportOptions& options) {
  run_passes(options);
  std::vector<emit::Method> methods;
  for (const auto& graph : graphs_) methods.push_back({graph->name(), graph.get()});
  emit::Report report = emit::write(path.string(), methods, emit_options(options, path));
  if (!options.quiet) std::cout << report;
  return report;
}

std::vector<std::byte> Exporter::write(const ExportOptions& options, emit::Report* report) {
  run_passes(options);
  std::vector<emit::Method> methods;
  for (const auto& graph : graphs_) methods.push_back({graph->name(), graph.get()});
  emit::Report own;
  return emit::write(methods, emit_options(options, "program"), report ? *report : own);
}

}  // namespace taper
