#pragma once
#include "taper/runtime/core/span.h"

namespace taper {

/// A thread pool as kernels see it. It belongs to the caller. Without one, everything runs on the
/// caller's thread.
///
/// A kernel's result never depends on `count`: the shape of the work decides how it is cut into
/// tasks, and not the number of threads.
struct Threads {
  int count = 1;  ///< threads that share the work, the caller's included
  void* pool = nullptr;
  /// Calls `task(context, i)` once for each i in [0, tasks), in any order and in parallel. Returns
  /// when all are done.
  void (*run)(void* pool, void (*task)(void* context, index_t i), void* context,
              index_t tasks) = nullptr;
};

/// Runs `body(i)` for each i in [0, tasks), on `threads` if there are any.
template <class Body>
void parallel_for(const Threads* threads, index_t tasks, const Body& body) {
  if (threads == nullptr || threads->count <= 1 || tasks <= 1) {
    for (index_t i = 0; i < tasks; ++i) body(i);
    return;
  }
  threads->run(
      threads->pool, [](void* context, index_t i) { (*static_cast<const Body*>(context))(i); },
      const_cast<void*>(static_cast<const void*>(&body)), tasks);
}

}  // namespace taper
