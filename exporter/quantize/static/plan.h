// Which nodes compute on integers, and which values need a grid for that. Internal.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/quantize/static/decision.h"
#include "taper/exporter/quantize/static/options.h"
#include "taper/exporter/quantize/static/roles.h"

namespace taper::quantize {

/// Values with one grid in common.
struct GridGroup {
  std::vector<ir::Value*> values;
  std::optional<Grid> known;  ///< the range follows from the operator
};

struct PlannedValue {
  ir::Value* value;
  size_t group;
  /// The value exists only as integers. Otherwise only quantized readers get integers.
  bool for_all_readers;
};

struct Plan {
  std::vector<Decision> decisions;  ///< in the order of the nodes
  std::vector<GridGroup> groups;
  std::vector<PlannedValue> values;  ///< inputs, constants and results in their order
  /// The activations that a quantized node reads as integers.
  std::map<const ir::Node*, std::vector<ir::Value*>> reads;
  std::vector<ir::Node*> products;  ///< those that are quantized
  /// For each node with a grid of its own, the value that ends it: its result, or that of the limit
  /// behind it.
  std::vector<std::pair<ir::Node*, ir::Value*>> ends;
};

/// Decides for the nodes of `graph`. Bodies of branches and loops stay float. `only`: no other
/// node is quantized, except a limit that joins it. Throws ExportError for a pattern that fits no
/// node.
Plan make_plan(ir::Graph& graph, const StaticOptions& options, const ir::Node* only = nullptr);

}  // namespace taper::quantize
