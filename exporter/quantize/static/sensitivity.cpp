#include "taper/exporter/quantize/static/sensitivity.h"

#include <algorithm>
#include <map>
#include <set>

#include "taper/exporter/base/error.h"
#include "taper/exporter/quantize/static/output_errors.h"
#include "taper/exporter/quantize/static/plan.h"
#include "taper/exporter/quantize/static/quantize.h"
#include "taper/exporter/quantize/static/run_examples.h"

namespace taper::quantize {
namespace {

using eager::Tensor;
using ir::Node;
using ir::Value;
/// The name of the float value that a dequantized value stands for; nullptr: it is another value.
const std::string* rounded_name(const Value& value) {
  if (value.node == nullptr || value.node->op != &ops::quantized_decomposed_dequantize_per_tensor)
    return nullptr;
  const Node* source = std::get<Value*>(value.node->arguments[0])->node;
  if (source == nullptr || source->op != &ops::quantized_decomposed_quantize_per_tensor)
    return nullptr;
  return &std::get<Value*>(source->arguments[0])->name;
}

Node* node_of(ir::Graph& graph, const std::string& result) {
  for (Node& node : graph.nodes())
    if (!node.results.empty() && node.result() != nullptr && node.result()->name == result)
      return &node;
  throw ExportError("there is no node %" + result);
}

class Measuring {
 public:
  Measuring(ir::Graph& graph, const Ranges& ranges, const Examples& examples,
            const StaticOptions& options, const Progress& progress)
      : graph_(graph),
        ranges_(ranges),
        examples_(examples),
        options_(options),
        progress_(progress),
        plan_(make_plan(graph, options)) {
    all_ = (2 + plan_.ends.size()) * examples.count;
  }

  Sensitivity run() {
    Sensitivity result;
    compare_all(result);
    double sum = 0;
    for (size_t i = 0; i < plan_.ends.size(); ++i) {
      const auto& [node, end] = plan_.ends[i];
      const SignalError& here = errors_[end->name];
      const double alone = noise_of_alone(*node);
      sum += alone;
      result.nodes.push_back(
          {end->name, ir::describe(*node), here.sqnr_db(), here.cosine(), decibels(alone), alone});
    }
    for (NodeError& node : result.nodes) node.share = sum == 0 ? 0 : node.share / sum;
    std::ranges::stable_sort(result.nodes, std::greater(), &NodeError::share);
    return result;
  }

 private:
  /// Runs the float model and the quantized one beside each other.
  void compare_all(Sensitivity& result) {
    const auto quantized = copy_of(graph_);
    quantize_static(*quantized, ranges_, options_);
    for (const auto& [node, end] : plan_.ends) errors_[end->name];
    OutputErrors outputs;
    for (size_t i = 0; i < examples_.count; ++i) {
      std::map<std::string, Numbers> wanted;
      outputs_.push_back(
          float_outputs(run_example(graph_, examples_, i, [&](const Value& v, const Tensor& t) {
            if (errors_.contains(v.name)) wanted[v.name] = t.to_vector<float>();
          })));
      advance();
      outputs.add(float_outputs(run_example(*quantized, examples_, i,
                                            [&](const Value& v, const Tensor& t) {
                                              const std::string* name = rounded_name(v);
                                              if (name == nullptr) return;
                                              const auto found = wanted.find(*name);
                                              if (found == wanted.end()) return;
                                              errors_[*name].add(t.to_vector<float>(),
                                                                 found->second);
                                              wanted.erase(found);  // other readers get the same
                                            })),
                  outputs_[i]);
      advance();
    }
    result.outputs_db = decibels(outputs.noise());
    result.outputs_cosine = outputs.cosine();
  }

  double noise_of_alone(const Node& node) {
    const auto graph = copy_of(graph_);
    quantize_one(*graph, *node_of(*graph, node.result()->name), ranges_, options_);
    OutputErrors errors;
    for (size_t i = 0; i < examples_.count; ++i) {
      errors.add(float_outputs(run_example(*graph, examples_, i)), outputs_[i]);
      advance();
    }
    return errors.noise();
  }

  void advance() {
    if (progress_) progress_(++done_, all_);
  }

  ir::Graph& graph_;
  const Ranges& ranges_;
  const Examples& examples_;
  const StaticOptions& options_;
  const Progress& progress_;
  Plan plan_;
  size_t done_ = 0, all_ = 0;
  std::map<std::string, SignalError> errors_;  ///< of the results of nodes
  std::vector<std::vector<Numbers>> outputs_;  ///< of the float model, for each example
};

}  // namespace

Sensitivity measure_sensitivity(ir::Graph& graph, const Ranges& ranges, const Examples& examples,
                                const StaticOptions& options, const Progress& progress) {
  return Measuring(graph, ranges, examples, options, progress).run();
}

}  // namespace taper::quantize
