// Where the values of a method lie: which share a buffer, which lie in a state, and from when to
// when a buffer is needed.
#pragma once
#include <span>
#include <unordered_map>
#include <vector>

#include "taper/exporter/emit/kernels.h"
#include "taper/exporter/ir/graph.h"

namespace taper::emit {

/// The storage of a value that is no view. Stored in programs: never change a value.
struct Place {
  enum class Kind : uint8_t { buffer = 0, constant = 1, state = 2 };
  Kind kind;
  int index;  ///< among the placement's buffers, or the graph's constants or states
};

struct Buffer {
  Dim size_bytes;
  int first, last;  ///< instructions between which it is needed, both included
  bool io;          ///< holds an input or an output, so it outlasts the call
};

/// What the device does, in order.
struct Step {
  enum class Kind : uint8_t { kernel, copy, bind };
  Kind kind;
  const ir::Node* node = nullptr;    ///< kernel
  const ir::Write* write = nullptr;  ///< copy: to a state that could not be written in place
  const ir::SymbolBinding* symbol = nullptr;  ///< bind
};

struct Placement {
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  std::unordered_map<const ir::Value*, Place> places;  ///< of every value that is no view
  int written_in_place = 0;                            ///< states
  int reused = 0;                                      ///< results that overwrite an argument

  Place place_of(const ir::Value* value) const { return places.at(ir::base_of(value)); }
};

/// Places the values of a legalized graph. A result takes over the buffer of an argument that
/// nobody needs afterwards where its kernels allow that; a write to a state becomes the place of
/// its value where nobody reads the old one any more.
Placement place_values(const ir::Graph& graph,
                       const std::map<const ir::Node*, Candidates>& candidates);

}  // namespace taper::emit
