// Where buffers lie in the arena, as an order: for each buffer, which buffers it lies above. The
// device computes places from it, `place = max(end of the buffers below)`, so buffers that live at
// the same time never overlap, whatever the symbols are.
#pragma once
#include <cstdint>
#include <vector>

#include "taper/exporter/dim/dim.h"

namespace taper::emit {

inline constexpr int64_t buffer_alignment = 64;

/// A piece of memory that is needed from instruction `first` to instruction `last`, both included.
struct PlannedBuffer {
  Dim size_bytes;
  int first, last;
};

struct MemoryPlan {
  std::vector<int> order;  ///< indices of buffers; each lies above earlier ones only
  /// Beside the buffers: the ones directly below, earlier in `order`. At most three a buffer, taken
  /// over all.
  std::vector<std::vector<int>> above;
  int64_t peak_bytes = 0;  ///< at the maximum of every symbol
  /// The most that lives at one time there, each buffer but one rounded up to the alignment: no
  /// plan needs less.
  int64_t lower_bound_bytes = 0;
  int64_t steps = 0;  ///< what planning took: buffers and gaps looked at
};

/// Plans by placing the buffers in several ways (packing.h) at several settings of the symbols, the
/// maximum among them, and keeps the order with the smallest peak there; the other settings break
/// ties. Takes n log n steps and a bounded number more. Every symbol needs a finite maximum.
MemoryPlan plan_memory(const std::vector<PlannedBuffer>& buffers);

/// What the device computes: the place of every buffer at one setting. Returns the end of the
/// topmost one.
int64_t place_buffers(const MemoryPlan& plan, const std::vector<int64_t>& sizes,
                      std::vector<int64_t>& places);

}  // namespace taper::emit
