#include "taper/exporter/quantize/static/smooth.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/base/error.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/quantize/static/input_scales.h"
#include "taper/exporter/quantize/static/run_examples.h"

namespace taper::quantize {
namespace {

using Peaks = std::vector<float>;  // the largest magnitude of each channel

void widen(float& peak, float x) { peak = std::max(peak, std::abs(x)); }

std::map<const ir::Value*, Peaks> peaks_of_inputs(const ir::Graph& graph,
                                                  const std::vector<SharedInput>& inputs,
                                                  const Examples& examples,
                                                  const Progress& progress) {
  std::map<const ir::Value*, Peaks> peaks;
  for (const SharedInput& i : inputs) peaks[i.input].assign(static_cast<size_t>(i.channels), 0);
  for (size_t e = 0; e < examples.count; ++e) {
    run_example(graph, examples, e, [&](const ir::Value& v, const eager::Tensor& t) {
      const auto found = peaks.find(&v);
      if (found == peaks.end()) return;
      const std::vector<float> x = t.to_vector<float>();
      if (!std::ranges::all_of(x, [](float f) { return std::isfinite(f); }))
        throw ExportError("%" + v.name + " is not finite");
      for (size_t i = 0; i < x.size(); ++i) widen(found->second[i % found->second.size()], x[i]);
    });
    if (progress) progress(e + 1, examples.count);
  }
  return peaks;
}

Peaks peaks_of_weights(ir::Graph& graph, const SharedInput& shared) {
  Peaks peaks(static_cast<size_t>(shared.channels), 0);
  for (const ir::Node* node : shared.products) {
    std::vector<float> w = ir::tensor_of(weight_of(graph, *node).payload).to_vector<float>();
    for_each_channel(*node, w, [&](float& x, size_t channel) { widen(peaks[channel], x); });
  }
  return peaks;
}

std::vector<float> factors_of(const Peaks& activations, const Peaks& weights, double strength) {
  std::vector<float> factors;
  for (size_t c = 0; c < activations.size(); ++c) {
    const double factor = std::pow(activations[c], strength) / std::pow(weights[c], 1 - strength);
    const bool is_usable = activations[c] > 0 && weights[c] > 0 &&
                           std::isnormal(static_cast<float>(factor)) &&
                           std::isnormal(static_cast<float>(1 / factor));
    factors.push_back(is_usable ? static_cast<float>(factor) : 1);
  }
  return factors;
}

}  // namespace

int smooth(ir::Graph& graph, const Examples& examples, double strength, const Progress& progress) {
  if (!(strength >= 0 && strength <= 1)) throw ExportError("smooth: the strength must lie in 0..1");
  const std::vector<SharedInput> inputs = find_shared_inputs(graph);
  auto peaks = peaks_of_inputs(graph, inputs, examples, progress);
  InputScaling scaling;
  int smoothed = 0;
  for (const SharedInput& shared : inputs)
    smoothed += scaling.scale(
        graph, shared, factors_of(peaks[shared.input], peaks_of_weights(graph, shared), strength),
        /*may_add_node=*/false);
  return smoothed;
}

}  // namespace taper::quantize
