// Files with what the library packed, for several processes.
#pragma once
#include <cstddef>
#include <cstdint>

namespace taper::delegates::xnnpack {

// Kernels of the library read whole vectors, so they read behind the end of packed bytes.
inline constexpr size_t bytes_behind_packed = 128;

/// Files that hold packed bytes. Each process maps the same file, so the bytes are in memory once.
///
/// Threads may call it at the same time.
class PackFiles {
 public:
  /// Maps equal bytes, at a multiple of 64, with bytes_behind_packed readable ones behind them.
  /// Writes them into a new file first if there is none. nullptr: they cannot be had. `hash` is
  /// that of the bytes.
  virtual const void* map(const void* bytes, size_t count, uint64_t hash) = 0;
  /// Nobody reads what `map` gave any more.
  virtual void unmap(const void* bytes) = 0;

 protected:
  ~PackFiles() = default;
};

}  // namespace taper::delegates::xnnpack
