// Counts heap allocations of the whole program: link allocations.cpp into the test.
#pragma once
#include <cstddef>

namespace taper::tests {

/// Calls of malloc, calloc, realloc, aligned_alloc and new so far, of all threads. Under a
/// sanitizer, which brings its own malloc, only those through new.
size_t allocation_count();

}  // namespace taper::tests
