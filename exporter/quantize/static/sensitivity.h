// Which nodes the error of a quantized model comes from.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "taper/exporter/quantize/static/calibrate.h"

namespace taper::quantize {

/// A product, a sum or a function with a grid of its own, together with the limit that joins it.
struct NodeError {
  std::string name;     ///< of its result in the float graph: "relu_3"
  std::string node;     ///< "convolution at net.py:14 (conv1)"
  double sqnr_db = 0;   ///< of its result in the quantized model, against the float model
  double cosine = 0;    ///< of the same
  double alone_db = 0;  ///< SQNR of the model's outputs if this node alone is quantized
  double share = 0;     ///< of the noise in the outputs that all nodes make, each alone
};

struct Sensitivity {
  /// Of the model's float outputs in the quantized model. With several outputs, of the mean of
  /// their noises.
  double outputs_db = 0;
  double outputs_cosine = 0;     ///< the least of all outputs
  std::vector<NodeError> nodes;  ///< the most harmful first
};

/// Compares the model with its quantized form over `examples`, and quantizes each node alone. So
/// the model runs about once for each node and example. `graph`, `ranges` and `options` are those
/// of `quantize_static`. The graph does not change. `progress` counts runs.
Sensitivity measure_sensitivity(ir::Graph& graph, const Ranges& ranges, const Examples& examples,
                                const StaticOptions& options, const Progress& progress = {});

/// Prints a table of the nodes. `most`: so many nodes; 0: all.
void print(std::ostream& out, const Sensitivity& sensitivity, size_t most = 0);

}  // namespace taper::quantize
