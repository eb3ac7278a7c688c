// How much memory a process ever had.
#pragma once
#include <sys/resource.h>

#include <cstddef>

namespace taper::tests {

/// The most resident memory of this process so far, in bytes.
inline size_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return static_cast<size_t>(usage.ru_maxrss);
#else
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
#endif
}

}  // namespace taper::tests
