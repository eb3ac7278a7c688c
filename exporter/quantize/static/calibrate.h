// Runs a model over examples, and chooses the grids of its activations.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/ir/graph.h"
#include "taper/exporter/quantize/static/options.h"

namespace taper::quantize {

/// Calls of the model. Each is a list of inputs in order, as Interpreter::run takes them. A call
/// may be a batch.
struct Examples {
  size_t count = 0;
  std::function<std::vector<eager::Tensor>(size_t i)> at;  ///< makes the call `i`

  Examples() = default;
  Examples(size_t count, std::function<std::vector<eager::Tensor>(size_t)> at)
      : count(count), at(std::move(at)) {}
  Examples(std::vector<std::vector<eager::Tensor>> calls)
      : count(calls.size()), at([calls = std::move(calls)](size_t i) { return calls[i]; }) {}
};

/// Gets the number of examples that are done, and of all, after each example.
using Progress = std::function<void(size_t done, size_t total)>;

/// What an activation was like, and its grid. Activations that share a grid have equal ranges.
struct Range {
  float low = 0, high = 0;
  Grid grid;
  /// For reports; nullptr: the observer does not count values.
  std::shared_ptr<const Histogram> histogram;
};

struct Ranges {
  std::map<std::string, Range> values;  ///< by the name of the value in the graph
  /// StaticOptions::correct_bias: what to add to each channel of the bias of a product, by the name
  /// of its result.
  std::map<std::string, std::vector<float>> bias_shifts;
  std::vector<std::string> warnings;  ///< activations that never change
};

/// Runs `graph`, whose operators have their final form (`prepare_static`), over all examples. The
/// graph does not change. Throws ExportError if there is no example, nothing to quantize, or a
/// model that is quantized already; and, with the example and the node, for an example that does
/// not fit the inputs, and an activation that is NaN or infinite.
Ranges calibrate(ir::Graph& graph, const Examples& examples, const StaticOptions& options,
                 const Progress& progress = {});

}  // namespace taper::quantize
