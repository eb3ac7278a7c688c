// A graph and the bodies in it as one sequence of steps. Internal to placement.
#pragma once
#include <unordered_map>
#include <vector>

#include "taper/exporter/emit/placement.h"

namespace taper::emit {

struct Loop {
  int begin, end;  ///< the steps loop_begin and loop_end
  int around;      ///< the loop around it; -1: none
};

struct Flattened {
  std::vector<Step> steps;
  std::vector<Loop> loops;
  std::vector<int> loop_of;  ///< beside the steps: the innermost loop around each; -1: none
  /// What lies where another value does, by nature: inputs of bodies on their operands, or on the
  /// result of the loop that carries them. Bases only. `root_of` shortens chains.
  mutable std::unordered_map<const ir::Value*, const ir::Value*> aliases;

  /// The value whose storage `value` looks into, through views and aliases.
  const ir::Value* root_of(const ir::Value* value) const;
};

/// Every result of a branch or loop is given its value by copy steps; placement drops those that it
/// can do without.
Flattened flatten(const ir::Graph& graph);

}  // namespace taper::emit
