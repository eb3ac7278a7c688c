// The data of a Session. Only sessions and methods include this.
#pragma once
#include "taper/runtime/core/arena.h"
#include "taper/runtime/program/tables.h"

namespace taper::internal {

struct SessionData {
  const ProgramData* program;
  const Threads* threads;
  void** states;  ///< the address of each state, in its space
  size_t* state_bytes;
  Arena arena;       ///< the rest of the session's memory, for methods without memory of their own
  Arena unused;      ///< the same rest before any method was created
  uint32_t methods;  ///< number of open ones
  bool is_open;
};

/// The parts that `Session::create` takes from host memory, in this order. It takes the same when
/// it measures.
struct SessionParts {
  SessionData* data;
  void** states;
  size_t* state_bytes;
  SessionParts(Arena& arena, const ProgramData& program);
};

}  // namespace taper::internal
