#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "taper/exporter/base/location.h"

namespace taper::eager {

/// Bytes that tensors share. They are 64-byte aligned, with 64 readable bytes behind. Tensors hold
/// a Storage by shared_ptr. Its address is the identity that alias analysis and the tracer use.
class Storage {
  struct Behind {};

 public:
  /// Uninitialised memory, in one block with the object. A freed block is used again if it fits.
  static std::shared_ptr<Storage> allocate(size_t bytes);
  /// Memory of somebody else, which `owner` keeps alive.
  Storage(void* data, size_t bytes, std::shared_ptr<const void> owner);
  /// No memory: the storage of a traced tensor is only an identity and a size.
  struct Symbolic {};
  explicit Storage(Symbolic) {}
  /// For `allocate`: the bytes lie behind the object.
  Storage(Behind, size_t bytes);
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return bytes_; }

  /// Counts writes. A tensor that autograd saved is valid only while the version stays the same.
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

/// The bytes that tensors hold now, and the bytes that the cache keeps for reuse.
struct MemoryUse {
  size_t live_bytes, cached_bytes;
};
MemoryUse memory_use();
/// Gives cached blocks back to the system.
void empty_cache();

}  // namespace taper::eager
