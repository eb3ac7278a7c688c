// Whether work is worth handing to other threads.
#pragma once
#include "taper/runtime/platform/threads.h"

namespace taper::portable {

/// `threads`, or none if all tasks together touch so few elements that one thread is sooner done:
/// handing tasks out takes 0.1 to 0.2 microseconds, and the elements lie in one thread's cache.
inline const Threads* if_it_pays(const Threads* threads, index_t elements) {
  constexpr index_t least = 4096;
  return elements < least ? nullptr : threads;
}

}  // namespace taper::portable
