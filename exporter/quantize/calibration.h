// Runs a graph on calibration data, and sums what GPTQ needs.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/quantize/gptq.h"
#include "taper/exporter/quantize/static/calibrate.h"

namespace taper::quantize {

/// What is multiplied with a weight.
struct ProductInput {
  const ir::Value* rows;
  /// Of a product with a stack of matrices: where the rows of each of them end.
  const ir::Value* ends = nullptr;

  auto operator<=>(const ProductInput&) const = default;
  int64_t depth() const;
  int64_t matrices() const;
};

/// A Hessian for each matrix that an input is multiplied with. Weights with the same input share
/// them.
using Hessians = std::map<ProductInput, std::vector<std::shared_ptr<Hessian>>>;

/// Runs the examples through eager, each with the initial states, and sums x xᵀ over the last
/// dimension of each of `inputs`. Calls `advance` after each example. Throws ExportError if one
/// does not fit, or a value is not finite.
Hessians run_samples(const ir::Graph& graph, const Examples& samples,
                     const std::vector<ProductInput>& inputs, const std::function<void()>& advance);

/// Adds x xᵀ of the rows of `x`, whose last dimension is that of the Hessian. `name`: of what they
/// are. Throws ExportError if a number is not finite.
void add_rows(Hessian& hessian, const eager::Tensor& x, const std::string& name);

/// The sum of squares of a layer's results over the calibration data: that of w H wᵀ for each row
/// of a weight (rows, depth), or of its errors.
double result_energy(std::span<const float> w, const Hessian& hessian);

}  // namespace taper::quantize
