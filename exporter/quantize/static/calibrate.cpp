#include "taper/exporter/quantize/static/calibrate.h"

#include <cmath>
#include <limits>
#include <unordered_map>

#include "taper/exporter/base/error.h"
#include "taper/exporter/quantize/static/bias_correction.h"
#include "taper/exporter/quantize/static/plan.h"
#include "taper/exporter/quantize/static/run_examples.h"

namespace taper::quantize {
namespace {

using eager::Tensor;

/// "%conv2d_1, convolution at net.py:14 (conv1)"
std::string text_of(const ir::Value& value) {
  return "%" + value.name + (value.node == nullptr ? "" : ", " + ir::describe(*value.node));
}

void require_finite(const ir::Value& value, const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  const float* elements = dense.data<float>();
  const int64_t count = dense.numel().value();
  for (int64_t i = 0; i < count; ++i)
    if (!(std::abs(elements[i]) <= std::numeric_limits<float>::max()))
      throw ExportError(text_of(value) + ", is " + (std::isnan(elements[i]) ? "NaN" : "infinite") +
                        " in element " + std::to_string(i) +
                        "; calibration needs finite activations");
}

void require_float(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes())
    for (const char* library : {"quantized_decomposed::", "torchao::"})
      if (name_of(*node.op).starts_with(library))
        throw ExportError(graph.name() + ": the model is quantized already: it has " +
                          ir::describe(node));
}

/// Why no node of the plan is quantized.
std::string why_nothing(const Plan& plan) {
  const std::string nothing = "there is nothing to quantize: ";
  for (const Decision& d : plan.decisions)
    if (d.why.starts_with("excluded")) return nothing + d.node + " is " + d.why;
  return nothing + "the model has no convolution or linear layer whose weight is a constant of f32";
}

class Calibration {
 public:
  Calibration(ir::Graph& graph, const StaticOptions& options)
      : graph_(graph), plan_(make_plan(graph, options)) {
    if (plan_.reads.empty()) throw ExportError(graph.name() + ": " + why_nothing(plan_));
    for (size_t i = 0; i < plan_.groups.size(); ++i)
      observers_.push_back(make_observer(options.observer));
    for (const PlannedValue& v : plan_.values) observer_of_[v.value] = observers_[v.group].get();
  }

  void see(const ir::Value& value, const Tensor& tensor) {
    const auto found = observer_of_.find(&value);
    if (found == observer_of_.end()) return;
    require_finite(value, tensor);
    found->second->observe(tensor);
  }
  void run(const Examples& examples, const Progress& progress) {
    for (size_t i = 0; i < examples.count; ++i) {
      run_example(graph_, examples, i, [this](const ir::Value& v, const Tensor& t) { see(v, t); });
      if (progress) progress(i + 1, examples.count);
    }
  }

  Ranges ranges() const {
    Ranges ranges;
    for (size_t i = 0; i < plan_.groups.size(); ++i) {
      const GridGroup& group = plan_.groups[i];
      const Observer& seen = *observers_[i];
      const Range range{seen.low(), seen.high(), group.known ? *group.known : seen.qparams(),
                        seen.histogram()};
      for (const ir::Value* v : group.values) ranges.values[v->name] = range;
      const ir::Value& first = *group.values[0];
      if (seen.low() == seen.high() && first.origin != ir::Value::Origin::constant)
        ranges.warnings.push_back(text_of(first) + ", is always " + std::to_string(seen.low()) +
                                  " over the examples; is the calibration data right?");
    }
    return ranges;
  }

 private:
  ir::Graph& graph_;
  Plan plan_;
  std::vector<std::unique_ptr<Observer>> observers_;  ///< one for each group
  std::unordered_map<const ir::Value*, Observer*> observer_of_;
};

}  // namespace

Ranges calibrate(ir::Graph& graph, const Examples& examples, const StaticOptions& options,
                 const Progress& progress) {
  if (examples.count == 0)
    throw ExportError(graph.name() + ": there is no calibration data; give at least one example");
  const size_t runs = options.correct_bias ? 2 * examples.count : examples.count;
  require_float(graph);
  Calibration calibration(graph, options);
  calibration.run(examples, [&](size_t done, size_t) {
    if (progress) progress(done, runs);
  });
  Ranges ranges = calibration.ranges();
  if (options.correct_bias)
    ranges.bias_shifts = bias_shifts(graph, examples, options, [&](size_t done, size_t) {
      if (progress) progress(examples.count + done, runs);
    });
  return ranges;
}

}  // namespace taper::quantize
