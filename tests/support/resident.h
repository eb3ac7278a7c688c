// What of a mapping is in memory. Needs Linux.
#pragma once
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace taper::tests {

/// Kilobytes of the mapping around an address that are in memory.
inline int64_t resident_kilobytes(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0, at = reinterpret_cast<uintptr_t>(address);
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2)
      inside = begin <= at && at < end;
    else if (inside && line.rfind("Rss:", 0) == 0)
      return std::stoll(line.substr(4));
  }
  return -1;
}

}  // namespace taper::tests
