// Decides which nodes of an f32 graph are computed in halves, as far as the graph alone decides
// this. Internal to to_half.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "taper/exporter/passes/to_half.h"

namespace taper::passes {

inline bool is_view(const ir::Node& node) { return node.op->category == Category::view; }

/// Whether each dimension is 1, or equal to that of `to`.
bool broadcasts_to(const ir::Type& from, const ir::Type& to);

class HalfPlan {
 public:
  /// Looks at the whole graph, before any value becomes a half.
  HalfPlan(const ir::Graph& graph, DType half, const target::KernelTable& kernels);

  /// The types of a node's results if all its f32 tensors become halves. nullptr: no kernel takes
  /// these.
  const std::vector<ir::Type>* types_in_half(const ir::Node& node) const;
  /// Whether a node's results may leave the range or precision of halves even if its operands fit:
  /// powers, exponentials and sums. PyTorch's autocast also computes these in f32.
  static bool grows(const ir::Node& node);
  /// The value of which a node takes or replaces a part; nullptr: none. Casting the whole value may
  /// be far more work: in a scan it would happen in each round.
  static const ir::Value* takes_part_of(const ir::Node& node);
  /// Whether a node's result is used only to compute integers, through elementwise nodes.
  bool leads_to_integers(const ir::Node& node) const { return to_integers_.contains(&node); }
  /// Whether all readers of the result read f32. The node must be elementwise or a view.
  bool leads_to_f32(const ir::Node& node) const { return to_f32_.contains(&node); }

 private:
  void try_in_half(const ir::Node& node, DType half, const target::KernelTable& kernels);
  bool reads_f32(const ir::Node& node) const;
  bool all_lead_to_integers(const ir::Node& node) const;
  bool all_read_f32(const ir::Node& node) const;

  const ir::Graph& graph_;
  std::unordered_map<const ir::Node*, std::vector<ir::Type>> in_half_;
  std::unordered_set<const ir::Node*> to_integers_, to_f32_;
};

/// Replaces the dtype of an argument if it is f32. Returns whether it did.
bool change_dtype(ir::Argument& argument, DType half);

/// Replaces each tensor of an argument by the result of `change`. Absent tensors stay absent.
template <class Change>
void change_values(ir::Argument& argument, const Change& change) {
  const auto replace = [&](ir::Value*& v) {
    if (v != nullptr) v = change(v);
  };
  if (auto* one = std::get_if<ir::Value*>(&argument)) replace(*one);
  if (auto* many = std::get_if<std::vector<ir::Value*>>(&argument))
    for (ir::Value*& v : *many) replace(v);
}

}  // namespace taper::passes
