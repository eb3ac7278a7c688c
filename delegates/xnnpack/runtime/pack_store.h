// What the library packed, once in memory for all programs that pack the same bytes.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "taper/delegates/xnnpack/runtime/memory.h"
#include "taper/delegates/xnnpack/runtime/pack_files.h"

namespace taper::delegates::xnnpack {

/// Packed weights of all programs of a backend. Two modules of one file, or two methods, pack equal
/// bytes. The second one gives its bytes back and reads those of the first. With files, other
/// processes read them, too.
///
/// Threads may call it at the same time.
class PackStore {
 public:
  /// Before the bytes, or alone if they are in a file.
  struct alignas(64) Block {
    Block* next;
    size_t bytes;
    uint64_t hash;
    uint32_t users;
    const void* mapped;  ///< nullptr: the bytes follow
    PackFiles* files;    ///< that mapped them

    void* place() { return this + 1; }
    const void* elements() const { return mapped != nullptr ? mapped : this + 1; }
  };

  explicit PackStore(Memory& memory) : memory_(memory) {}
  PackStore(const PackStore&) = delete;

  Memory& memory() { return memory_; }
  /// Where large blocks go from now on; nullptr: they stay in memory. The files outlive the store.
  void use_files(PackFiles* files) { files_ = files; }

  /// Memory for so many bytes, which nobody else sees yet. nullptr: there is none.
  Block* reserve(size_t bytes);
  /// Gives back a block that was not shared.
  void drop(Block* block);
  /// The block that holds these bytes for all: `block`, or an equal one, and then `block` is
  /// dropped. It stays until each of its users has left.
  Block* share(Block* block);
  void leave(Block* block);

 private:
  static size_t size_of(const Block& block);
  Block* find_and_join(const Block& block, Block* behind);
  Block* in_file(Block* block);
  void lock();
  void unlock() { is_locked_.clear(std::memory_order_release); }

  Memory& memory_;
  std::atomic<PackFiles*> files_{nullptr};
  std::atomic_flag is_locked_ = ATOMIC_FLAG_INIT;
  Block* first_ = nullptr;
};

}  // namespace taper::delegates::xnnpack
