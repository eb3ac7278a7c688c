// A graph and its bodies as one sequence of steps. Internal to placement.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "taper/exporter/emit/placement.h"

namespace taper::emit {

struct Loop {
  int begin, end;  ///< the steps loop_begin and loop_end
  int around;      ///< the loop that contains this one; -1: none
};

struct Flattened {
  std::vector<Step> steps;
  std::vector<Loop> loops;
  std::vector<int> loop_of;  ///< one for each step: the innermost loop that contains it; -1: none
  /// Values that always share the storage of another value. Inputs of a body lie on the operand, or
  /// on the loop's result that carries them. What a node of `in_place` reads lies on its result.
  /// Only values that are no views have entries. `root_of` shortens chains.
  mutable std::unordered_map<const ir::Value*, const ir::Value*> aliases;

  /// The value whose storage holds `value`, found through views and aliases.
  const ir::Value* root_of(const ir::Value* value) const;
};

/// Copy steps write the results of branches and loops. Placement drops the copies that are not
/// needed. `in_place`: the nodes of write_into_place.
Flattened flatten(const ir::Graph& graph, const std::unordered_set<const ir::Node*>& in_place);

}  // namespace taper::emit
