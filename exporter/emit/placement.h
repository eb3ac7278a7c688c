// The places of a method's values: which values share a buffer or lie in a state, and from when
// until when a buffer is needed. Branches and loops become jumps here.
#pragma once
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/target/kernel_table.h"

namespace taper::emit {

using target::Candidates;

/// The storage of a value that is not a view. Stored in programs: never change a value.
struct Place {
  enum class Kind : uint8_t { buffer = 0, constant = 1, state = 2 };
  Kind kind;
  int index;  ///< among the placement's buffers or constants, or the graph's states
};

struct Buffer {
  Dim size_bytes;
  int first, last;  ///< steps between which it is needed, inclusive
  bool io;  ///< holds an input or an output, so it is needed during the whole call and after it
};

/// An action of the device, in order.
struct Step {
  enum class Kind : uint8_t {
    kernel,       ///< or a delegate
    copy,         ///< copies `from` to `to`
    bind,         ///< reads `symbol`
    test,         ///< reads the boolean `from`
    jump,         ///< to step `target`
    jump_unless,  ///< jumps to `target` unless `from` was true when it was read
    loop_begin,   ///< `target` is its loop_end
    loop_end,     ///< if `from` was true when it was read, goes on after the loop_begin `target`
  };
  Kind kind;
  /// The node of the kernel or delegate, or the branch or loop to which the step belongs.
  const ir::Node* node = nullptr;
  const ir::Value *from = nullptr, *to = nullptr;
  const ir::SymbolBinding* symbol = nullptr;
  int target = 0;
};

struct Placement {
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  std::vector<const ir::Constant*> constants;          ///< those of the graph and of its bodies
  std::unordered_map<const ir::Value*, Place> places;  ///< of every value that is not a view
  int written_in_place = 0;                            ///< number of states
  int reused = 0;  ///< number of results that overwrite an argument

  Place place_of(const ir::Value* value) const { return places.at(ir::base_of(value)); }
};

/// Places the values of a legalized graph. A result reuses the buffer of an argument if nobody
/// needs the argument afterwards and the kernels allow it. Some values must be copied: into a
/// state, from a branch to its result, or to the next round of a loop. Such a value lies at its
/// destination from the start if nobody reads the old value any more. `in_place`: the nodes of
/// write_into_place, which become no steps.
Placement place_values(const ir::Graph& graph,
                       const std::map<const ir::Node*, Candidates>& candidates,
                       const std::unordered_set<const ir::Node*>& in_place);

/// Whether the number in `value` is read during a run. Otherwise it is read before the first step.
bool is_late(const Placement& placement, const ir::Graph& graph, const ir::Value* value);

}  // namespace taper::emit
