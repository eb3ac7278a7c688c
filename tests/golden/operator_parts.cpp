// What composite operators become in a program: traces the golden cases, and calls written by hand
// (seeds.h), of each row that has a decomposition.
//
//   operator_parts SEEDS FOLDER… > exporter/cli/operator_parts.def
//
// Prints a line a row, TAPER_PARTS("glu", "mul sigmoid"): every operator that one of its cases is
// made of, in the order of the alphabet. Casts, which follow from dtypes, and views, which a
// program holds as values, are named only where there is nothing else, "cast" and "view"; "nothing"
// is a row that gives its argument. A row that no trace can hold has no line.
#include <cstdio>
#include <map>
#include <set>

#include "run_case.h"
#include "seeds.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/passes/passes.h"
#include "taper/exporter/trace/trace.h"

namespace {

using namespace taper;
using namespace taper::golden;

/// The operators of the graph that a case becomes.
std::set<std::string> parts_of(const CaseFile& file, const Json& golden,
                               const golden::Target& target) {
  const Call like(file, golden, *target.info);
  std::vector<std::string> paths;
  std::vector<InputSpec> inputs;
  for (const auto& [path, tensor] : like.tensors()) {
    inputs.push_back(
        input("input" + std::to_string(paths.size()), tensor->sizes(), tensor->dtype()));
    paths.push_back(path);
  }
  const auto function = [&](const std::vector<Tensor>& in) {
    Call arguments(file, golden, *target.info);
    for (size_t i = 0; i < paths.size(); ++i)
      arguments.at(paths[i]) = eager::clone(in[i]);  // the operator may write it
    std::vector<Tensor> results = call(arguments, target);
    std::erase_if(results, [](const Tensor& t) { return !t.defined(); });
    return results;
  };
  const eager::CountBounds bounds(0, 4096);
  const auto graph = trace("case", function, inputs);
  passes::PassContext context;
  ir::for_each_graph(*graph, [&](ir::Graph& g) { passes::decompose(g, context); });
  size_t copies_of_inputs = paths.size();
  std::set<std::string> parts;
  for (const auto& node : graph->nodes()) {
    const std::string name(name_of(*node.op));
    if (name == "clone" && copies_of_inputs > 0) {
      --copies_of_inputs;
      continue;
    }
    parts.insert(node.op->category == Category::view ? "view" : name == "_to_copy" ? "cast" : name);
  }
  return parts;
}

using Found = std::map<std::string, std::set<std::string>>;  // parts by row

void look_at(const CaseFile& file, const Json& golden, Found& found) {
  try {
    const golden::Target target = target_of(file.name, golden);
    if (golden.contains("error") || target.info->decomposition == nullptr) return;
    eager::manual_seed(0);
    std::set<std::string> parts = parts_of(file, golden, target);
    found[std::string(target.info->name)].merge(parts);
  } catch (const NotHere&) {      // there is no such row or dtype
  } catch (const ExportError&) {  // only eager knows the elements that decide
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) return std::fprintf(stderr, "usage: operator_parts SEEDS FOLDER...\n"), 2;
  Found found;
  for (const CaseFile& file : read_seeds(argv[1]))
    for (const Json& seed : file.cases) look_at(file, seed, found);
  for (int i = 2; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (!entry.path().string().ends_with(".safetensors")) continue;
      const CaseFile file = CaseFile::read(entry.path());
      for (const Json& golden : file.cases) look_at(file, golden, found);
    }
  std::printf(
      "// What composite operators, and kernels that do not take all arguments, become: written by "
      "tests/golden/operator_parts.cpp, which\n// traces every golden case and seed.\n");
  for (auto& [row, parts] : found) {
    for (const char* minor : {"view", "cast"})
      if (parts.size() > 1) parts.erase(minor);
    std::string all;
    for (const std::string& part : parts) all += (all.empty() ? "" : " ") + part;
    std::printf("TAPER_PARTS(\"%s\", \"%s\")\n", row.c_str(),
                all.empty() ? "nothing" : all.c_str());
  }
} catch (const std::exception& e) {
  return std::fprintf(stderr, "operator_parts: %s\n", e.what()), 1;
}
