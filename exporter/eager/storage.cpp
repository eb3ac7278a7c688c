#include "taper/exporter/eager/storage.h"

#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "taper/exporter/base/error.h"

// Under the address sanitizer, cached blocks are out of bounds, and so is the memory behind the
// slack of blocks in use.
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>  // without the sanitizer these macros do nothing
#else
#define ASAN_POISON_MEMORY_REGION(address, size) (static_cast<void>(address))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) (static_cast<void>(address))
#endif

namespace taper::eager {
namespace {

constexpr size_t slack = 64, alignment = 64;
constexpr size_t cache_limit = size_t{1} << 30;

/// Held only for a few instructions; a mutex would cost as much as a small kernel.
class SpinLock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
};

/// Freed blocks by size class, four classes for each power of two. Training asks for the same sizes
/// in every step. New pages from the system cost more than most kernels that fill them.
class Cache {
 public:
  static size_t rounded(size_t bytes) {
    bytes = std::max<size_t>(bytes + slack, 128);
    const size_t step = std::max<size_t>(std::bit_floor(bytes) / 4, alignment);
    return (bytes + step - 1) / step * step;
  }
  void* take(size_t size) {
    {
      std::lock_guard lock(lock_);
      live_ += size;
      auto& blocks = blocks_of(size);
      if (!blocks.empty()) {
        void* block = blocks.back();
        blocks.pop_back();
        cached_ -= size;
        return block;
      }
    }
    void* block = std::aligned_alloc(alignment, size);
    if (block == nullptr) {
      clear();
      block = std::aligned_alloc(alignment, size);
    }
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  void give(void* block, size_t size) {
    std::lock_guard lock(lock_);
    live_ -= size;
    if (cached_ + size > cache_limit) {
      ASAN_UNPOISON_MEMORY_REGION(block, size);
      std::free(block);
      return;
    }
    ASAN_POISON_MEMORY_REGION(block, size);
    blocks_of(size).push_back(block);
    cached_ += size;
  }
  void clear() {
    std::lock_guard lock(lock_);
    for (auto& blocks : classes_) {
      for (void* block : blocks) std::free(block);
      blocks.clear();
    }
    cached_ = 0;
  }
  MemoryUse use() {
    std::lock_guard lock(lock_);
    return {live_, cached_};
  }

 private:
  std::vector<void*>& blocks_of(size_t size) {
    const int octave = std::bit_width(size) - 1;
    return classes_[static_cast<size_t>(octave) * 4 + ((size >> (octave - 2)) & 3)];
  }
  SpinLock lock_;
  std::vector<void*> classes_[64 * 4];
  size_t live_ = 0, cached_ = 0;
};

/// Never destroyed, because tensors in static variables may live longer.
Cache& cache() {
  static Cache* const instance = new Cache;
  return *instance;
}

constexpr size_t aligned(size_t address) {
  return (address + alignment - 1) / alignment * alignment;
}

/// Allocates one T with room for `bytes` behind it. So `allocate_shared` puts the counters, the
/// object and the elements into one block.
template <class T>
struct WithRoomBehind {
  using value_type = T;
  size_t bytes;

  explicit WithRoomBehind(size_t bytes) : bytes(bytes) {}
  template <class U>
  WithRoomBehind(const WithRoomBehind<U>& other) : bytes(other.bytes) {}
  T* allocate(size_t) {
    void* const taken = cache().take(block());
    ASAN_POISON_MEMORY_REGION(taken, block());
    ASAN_UNPOISON_MEMORY_REGION(taken, aligned(sizeof(T)) + bytes + slack);
    return static_cast<T*>(taken);
  }
  void deallocate(T* object, size_t) { cache().give(object, block()); }
  size_t block() const {
    static_assert(alignof(T) <= alignment);
    return Cache::rounded(aligned(sizeof(T)) + bytes);
  }
  template <class U>
  bool operator==(const WithRoomBehind<U>& other) const {
    return bytes == other.bytes;
  }
};

}  // namespace

std::shared_ptr<Storage> Storage::allocate(size_t bytes) {
  try {
    return std::allocate_shared<Storage>(WithRoomBehind<Storage>(bytes), Behind{}, bytes);
  } catch (const std::bad_alloc&) {
    throw ExportError("out of memory: a tensor needs " + std::to_string(bytes) + " bytes");
  }
}
Storage::Storage(Behind, size_t bytes)
    : data_(reinterpret_cast<std::byte*>(aligned(reinterpret_cast<uintptr_t>(this + 1)))),
      bytes_(bytes) {}
Storage::Storage(void* data, size_t bytes, std::shared_ptr<const void> owner)
    : data_(static_cast<std::byte*>(data)), bytes_(bytes), owner_(std::move(owner)) {}

MemoryUse memory_use() { return cache().use(); }
void empty_cache() { cache().clear(); }

}  // namespace taper::eager
