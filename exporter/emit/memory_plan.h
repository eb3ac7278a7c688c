// The places of buffers in the arena, stored as an order: for each buffer, the buffers that it lies
// above. The device computes places from it: place = max(end of the buffers below). So buffers that
// live at the same time never overlap, whatever the symbols are.
#pragma once
#include <cstdint>
#include <vector>

#include "taper/exporter/dim/dim.h"

namespace taper::emit {

inline constexpr int64_t buffer_alignment = 64;

/// A piece of memory that is needed from instruction `first` to instruction `last`, inclusive.
struct PlannedBuffer {
  Dim size_bytes;
  int first, last;
};

struct MemoryPlan {
  std::vector<int> order;  ///< indices of buffers; each lies above earlier ones only
  /// For each buffer, the buffers directly below it, which come earlier in `order`. On average
  /// there are at most three.
  std::vector<std::vector<int>> above;
  int64_t peak_bytes = 0;  ///< at the maximum of every symbol
  /// The largest sum of the buffers that live at one time at this setting, with all but one rounded
  /// up to the alignment. No plan needs less.
  int64_t lower_bound_bytes = 0;
  int64_t steps = 0;  ///< cost of planning: buffers and gaps that were looked at
};

/// Plans by placing the buffers in several ways (packing.h) at several settings of the symbols.
/// Keeps the order with the smallest peak at the maximum; the other settings break ties. Takes n
/// log n steps, and a bounded number more. Every symbol needs a finite maximum.
MemoryPlan plan_memory(const std::vector<PlannedBuffer>& buffers);

/// The computation of the device: the place of every buffer at one setting. Returns the end of the
/// topmost buffer.
int64_t place_buffers(const MemoryPlan& plan, const std::vector<int64_t>& sizes,
                      std::vector<int64_t>& places);

}  // namespace taper::emit
