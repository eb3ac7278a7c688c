// Tasks with scratch of their own, and other small arithmetic of the drivers.
#pragma once
#include <atomic>

#include "taper/runtime/platform/threads.h"

namespace taper::optimized {

inline constexpr index_t scratch_alignment = 64;

constexpr index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }
constexpr index_t round_up(index_t a, index_t b) { return ceil_div(a, b) * b; }
constexpr index_t smaller(index_t a, index_t b) { return a < b ? a : b; }
constexpr index_t larger(index_t a, index_t b) { return a > b ? a : b; }

/// Cuts [0, count) into `parts` nearly equal parts. Returns where part i begins, and part i - 1
/// ends.
constexpr index_t part_begin(index_t count, index_t parts, index_t i) { return count * i / parts; }

inline int thread_count(const Threads* threads) { return threads == nullptr ? 1 : threads->count; }

/// Calls `body(task, slot)` once for each task in [0, tasks), at most `slots` at a time. Tasks that
/// run at the same time have different slots in [0, slots). A slot takes the next task when it has
/// finished one, so tasks of different lengths balance.
template <class Body>
void parallel_for_slots(const Threads* threads, index_t tasks, index_t slots, const Body& body) {
  std::atomic<index_t> next{0};
  parallel_for(threads, smaller(slots, tasks), [&](index_t slot) {
    for (index_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;)
      body(task, slot);
  });
}

}  // namespace taper::optimized
