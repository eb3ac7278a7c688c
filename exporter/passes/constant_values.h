// Values of a graph that follow from its constants.
#pragma once
#include <unordered_map>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/ir/graph.h"

namespace taper::passes {

/// Computes nodes whose arguments are known, with eager's kernels. So the bits are those of the
/// program.
class ConstantValues {
 public:
  /// Knows the constants of the graph.
  explicit ConstantValues(const ir::Graph& graph);

  bool knows(const ir::Value* value) const { return known_.contains(value); }
  const eager::Tensor& at(const ir::Value* value) const { return known_.at(value); }
  /// Whether the node is an operator without symbolic numbers, whose tensors are all known.
  bool can_compute(const ir::Node& node) const;
  void compute(const ir::Node& node);
  /// Computes the value, and what it is made of. Returns false if it does not follow from constants
  /// alone.
  bool find(const ir::Value* value);

 private:
  std::unordered_map<const ir::Value*, eager::Tensor> known_;
};

}  // namespace taper::passes
