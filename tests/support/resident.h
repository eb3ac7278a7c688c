// What of a mapping is in memory. Needs Linux.
#pragma once
#include <sys/mman.h>

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

/// Kilobytes of the mappings for which somebody wished for large pages.
inline int64_t kilobytes_in_large_pages() {
  std::ifstream maps("/proc/self/smaps");
  int64_t size = 0, sum = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.rfind("Size:", 0) == 0) size = std::stoll(line.substr(5));
    if (line.rfind("VmFlags:", 0) == 0 && line.find(" hg") != std::string::npos) sum += size;
  }
  return sum;
}

/// Whether the system hears wishes for large pages. An emulator may keep them to itself.
inline bool hears_wishes_for_large_pages() {
  constexpr size_t bytes = size_t{4} << 20;
  const int64_t before = kilobytes_in_large_pages();
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return false;
#ifdef MADV_HUGEPAGE
  (void)::madvise(mapped, bytes, MADV_HUGEPAGE);
#endif
  const bool hears = kilobytes_in_large_pages() > before;
  (void)::munmap(mapped, bytes);
  return hears;
}

}  // namespace taper::tests
