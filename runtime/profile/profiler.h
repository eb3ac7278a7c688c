// Records the times of instructions, with fixed size, in the caller's memory.
#pragma once
#include <cstdint>

#include "taper/runtime/core/span.h"

namespace taper {

/// One execution of one instruction. `Method::instruction` describes the instruction.
struct ProfileEvent {
  uint32_t instruction;
  uint32_t queue;       ///< 0: the times are those of the work; else of enqueueing it
  uint64_t begin, end;  ///< in the clock's unit
};

/// Give it to `Method::set_profiler`. A runtime that was built without TAPER_PROFILE records
/// nothing.
struct Profiler {
  Span<ProfileEvent> events;
  uint64_t (*now)() = nullptr;  ///< a steady clock, in a unit that the caller knows
  index_t count = 0;            ///< events recorded; reset it between calls of `execute`
  index_t dropped = 0;          ///< events for which there was no room

  void record(uint32_t instruction, uint32_t queue, uint64_t begin, uint64_t end) {
    if (count < events.size())
      events[count++] = {instruction, queue, begin, end};
    else
      ++dropped;
  }
};

}  // namespace taper
