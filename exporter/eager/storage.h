#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "taper/exporter/base/location.h"

namespace taper::eager {

/// Bytes that tensors share: 64-byte aligned, with 64 readable bytes behind. Tensors hold it by
/// shared_ptr; its address is the identity that alias analysis and the tracer go by.
class Storage {
  struct Behind {};

 public:
  /// Uninitialised memory, in one block with the object itself; from a cache of freed blocks where
  /// one fits.
  static std::shared_ptr<Storage> allocate(size_t bytes);
  /// Somebody else's memory, kept alive by `owner`.
  Storage(void* data, size_t bytes, std::shared_ptr<const void> owner);
  /// No memory: a traced tensor's storage is an identity and a size only.
  struct Symbolic {};
  explicit Storage(Symbolic) {}
  /// For `allocate`: the bytes lie behind the object.
  Storage(Behind, size_t bytes);
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return bytes_; }

  /// Counts writes. What autograd saved is only valid while the version stays.
  uint64_t version() const { return version_; }
  Location last_write() const { return last_write_; }
  const char* last_writer() const { return last_writer_; }
  /// `writer`: the operator's schema or name, static storage.
  void wrote(const char* writer, Location at) {
    ++version_, last_writer_ = writer, last_write_ = at;
  }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  std::shared_ptr<const void> owner_;
  uint64_t version_ = 0;
  const char* last_writer_ = "";
  Location last_write_;
};

/// Bytes that tensors hold now, and that the cache keeps for reuse.
struct MemoryUse {
  size_t live_bytes, cached_bytes;
};
MemoryUse memory_use();
/// Gives cached blocks back to the system.
void empty_cache();

}  // namespace taper::eager
