// Where the values of a method lie: which share a buffer, which lie in a state, and from when to
// when a buffer is needed. Branches and loops become jumps here.
#pragma once
#include <span>
#include <unordered_map>
#include <vector>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/target/kernel_table.h"

namespace taper::emit {

using target::Candidates;

/// The storage of a value that is no view. Stored in programs: never change a value.
struct Place {
  enum class Kind : uint8_t { buffer = 0, constant = 1, state = 2 };
  Kind kind;
  int index;  ///< among the placement's buffers or constants, or the graph's states
};

struct Buffer {
  Dim size_bytes;
  int first, last;  ///< steps between which it is needed, both included
  bool io;          ///< holds an input or an output, so it outlasts the call
};

/// What the device does, in order.
struct Step {
  enum class Kind : uint8_t {
    kernel,
    copy,         ///< `from` to `to`
    bind,         ///< reads `symbol`
    test,         ///< reads the boolean `from`
    jump,         ///< to step `target`
    jump_unless,  ///< the same, unless `from` was true when it was read
    loop_begin,   ///< `target` is its end
    loop_end,     ///< goes on behind its beginning `target` if `from` was true when it was read
  };
  Kind kind;
  const ir::Node* node = nullptr;  ///< kernel; otherwise the branch or loop that the step is of
  const ir::Value *from = nullptr, *to = nullptr;
  const ir::SymbolBinding* symbol = nullptr;
  int target = 0;
};

struct Placement {
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  std::vector<const ir::Constant*> constants;          ///< of the graph and of the bodies in it
  std::unordered_map<const ir::Value*, Place> places;  ///< of every value that is no view
  int written_in_place = 0;                            ///< states
  int reused = 0;                                      ///< results that overwrite an argument

  Place place_of(const ir::Value* value) const { return places.at(ir::base_of(value)); }
};

/// Places the values of a legalized graph. A result reuses the buffer of an argument if nobody
/// needs the argument afterwards and the kernels allow it. Some values must be copied: into a
/// state, from a branch to its result, or to the next round of a loop. Such a value lies at its
/// destination from the start if nobody reads the old value any more.
Placement place_values(const ir::Graph& graph,
                       const std::map<const ir::Node*, Candidates>& candidates);

/// Whether a run reads the number in `value` on its way; else before the first step.
bool is_late(const Placement& placement, const ir::Graph& graph, const ir::Value* value);

}  // namespace taper::emit
