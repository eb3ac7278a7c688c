// Clamps that the node before them computes with its own result.
#pragma once
#include "taper/delegates/xnnpack/runtime/part.h"

namespace taper::delegates::xnnpack {

/// Nodes of a part.
class NodeSet {
 public:
  bool has(index_t node) const { return (words_[node / 64] >> (node % 64) & 1) != 0; }
  void add(index_t node) { words_[node / 64] |= uint64_t{1} << (node % 64); }

 private:
  uint64_t words_[most_nodes / 64] = {};
};

/// What a node computes with the clamps behind it.
struct Bounded {
  float low, high;
  uint32_t result;  ///< the value of the last clamp, or of the node
};

bool is_clamp(const NodeView& node);
/// Whether the library computes bounds of the node's result along with it.
bool has_bounds(const NodeView& node);
/// The only node that reads the value; -1: there are others, or it is a result of the part.
index_t only_reader(const Part& part, index_t value);

/// A node that `has_bounds`, with the clamps that alone read its result, one behind the other. Adds
/// these clamps to `fused`. Ends before a clamp that would leave a single number.
Bounded with_clamps(const Part& part, index_t node, NodeSet& fused);

}  // namespace taper::delegates::xnnpack
