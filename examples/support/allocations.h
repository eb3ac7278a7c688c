// Counts heap allocations of the whole program: link allocations.cpp into it.
#pragma once
#include <cstddef>

namespace taper {

/// Calls of malloc, calloc, realloc, aligned_alloc and new so far, of all threads. Under a
/// sanitizer, which brings its own malloc, only those through new.
size_t allocation_count();

}  // namespace taper
