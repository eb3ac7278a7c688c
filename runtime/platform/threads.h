#pragma once
#include "taper/runtime/core/span.h"

namespace taper {

/// A thread pool as kernels see it. It belongs to the caller. Without one, everything runs on the
/// caller's thread.
///
/// A kernel's result never depends on `count`: the shape of the work decides how it is cut into
/// tasks, and not the number of threads.
struct Threads {
  using Task = void (*)(void* context, index_t i, int thread);

  int count = 1;  ///< threads that share the work, the caller's included
  void* pool = nullptr;
  /// Calls `task(context, i, thread)` once for each i in [0, tasks), in any order and in parallel.
  /// Calls at the same time have different threads in [0, min(count, tasks)). Returns when all are
  /// done. A good pool gives a thread neighbouring tasks, and the same ones in each call: what they
  /// read then lies in its cache.
  void (*run)(void* pool, Task task, void* context, index_t tasks) = nullptr;
};

/// Runs `body(i, thread)` for each i in [0, tasks), on `threads` if there are any. Calls at the
/// same time have different `thread`s, which count from 0.
template <class Body>
void parallel_for_threads(const Threads* threads, index_t tasks, const Body& body) {
  if (threads == nullptr || threads->count <= 1 || tasks <= 1) {
    for (index_t i = 0; i < tasks; ++i) body(i, 0);
    return;
  }
  threads->run(
      threads->pool,
      [](void* context, index_t i, int thread) { (*static_cast<const Body*>(context))(i, thread); },
      const_cast<void*>(static_cast<const void*>(&body)), tasks);
}

/// Runs `body(i)` for each i in [0, tasks), on `threads` if there are any.
template <class Body>
void parallel_for(const Threads* threads, index_t tasks, const Body& body) {
  parallel_for_threads(threads, tasks, [&](index_t i, int) { body(i); });
}

}  // namespace taper
