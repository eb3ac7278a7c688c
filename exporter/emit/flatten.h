// A graph and the bodies in it as one sequence of steps. Internal to placement.
#pragma once
#include <unordered_map>
#include <vector>

#include "taper/exporter/emit/placement.h"

namespace taper::emit {

struct Flattened {
  std::vector<Step> steps;
  /// What lies where another value does, by nature: inputs of bodies on their operands, or on the
  /// result of the loop that carries them. Bases only.
  std::unordered_map<const ir::Value*, const ir::Value*> aliases;
  std::vector<std::pair<int, int>> loops;  ///< the steps loop_begin and loop_end of each

  /// The value whose storage `value` looks into, through views and aliases.
  const ir::Value* root_of(const ir::Value* value) const;
};

/// Every result of a branch or loop is given its value by copy steps; placement drops those that it
/// can do without.
Flattened flatten(const ir::Graph& graph);

}  // namespace taper::emit
