// Runs a graph on calibration data, and sums what GPTQ needs.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/ir/graph.h"
#include "taper/exporter/quantize/gptq.h"

namespace taper::quantize {

/// The inputs of one call of a graph.
using Sample = std::vector<eager::Tensor>;

/// Hessians by the value that is multiplied with a weight. Weights with the same input share one.
using Hessians = std::map<const ir::Value*, std::shared_ptr<Hessian>>;

/// Runs the samples through eager, each with the initial states, and sums x xᵀ over the last
/// dimension of each of `inputs`. Calls `advance` after each sample. Throws ExportError if a sample
/// does not fit, or a value is not finite.
Hessians run_samples(const ir::Graph& graph, const std::vector<Sample>& samples,
                     const std::vector<const ir::Value*>& inputs,
                     const std::function<void()>& advance);

/// The sum of squares of a layer's results over the calibration data: that of w H wᵀ for each row
/// of a weight (rows, depth), or of its errors.
double result_energy(std::span<const float> w, const Hessian& hessian);

}  // namespace taper::quantize
