// Hands parts of a graph to backends.
#pragma once
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "taper/exporter/partition/delegate.h"

namespace taper::partition {

/// What became of the nodes of a graph.
struct PartitionReport {
  /// Nodes of one operator that stayed with the kernels, for the same reason.
  struct Left {
    std::string op, reason;
    int count = 0;
    std::string first;  ///< describes the first one: "relu at net.py:14 (features.3)"
  };
  int parts = 0, delegated = 0;  ///< delegates, and the nodes in them, without views
  /// What the nodes multiply (roofline/multiply_adds.h): of the delegates, and of the whole graph.
  double delegated_work = 0, work = 0;
  std::vector<Left> left;  ///< the most frequent first
  /// Modules with nodes that stayed. Modules that differ in numbers alone count as one, in which
  /// `*` stands for a number: "encoder.layer.*.norm".
  struct Module {
    std::string path;
    int modules = 0;                       ///< how many it stands for
    std::map<std::string, int> operators;  ///< nodes that stayed, by operator
  };
  std::vector<Module> modules;  ///< in order of the graph; without nodes of no module

  int left_count() const;
};
/// A few lines for a terminal.
std::ostream& operator<<(std::ostream& out, const PartitionReport& report);

/// Makes a `delegate` node of each group of the delegate, and returns their number. `partition`
/// takes these nodes into its parts. Other nodes keep what they read of a group.
int group(ir::Graph& graph, const Delegate& delegate);

/// Replaces the parts of the graph that the delegate takes by `delegate` nodes (ir/delegate.h).
///
/// A part is a connected set of nodes that the delegate takes. No path leads out of a part and back
/// into it. Parts that do not pay stay as they are. Bodies of branches and loops are graphs of
/// their own, to which this gives the constants among their operands. Call it for each of them
/// next.
///
/// `each_node`: each node of these parts becomes a delegate of its own. This is slower. A profile
/// then times every node, and a comparison finds the first that differs.
PartitionReport partition(ir::Graph& graph, const Delegate& delegate, bool each_node = false);

}  // namespace taper::partition
