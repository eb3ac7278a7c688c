// Memory that ends where nobody may read or write.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "taper/runtime/core/span.h"

namespace taper::tests {

/// `size` bytes, right behind which lies a page that ends the process when it is touched. They hold
/// what nobody may rely on. Where `size` is a multiple of 64, they start at one.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t size) : size_(size) {
    const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t usable = (size + page - 1) / page * page;
    mapped_bytes_ = usable + page;
    mapped_ =
        ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) throw std::bad_alloc();
    std::byte* const guard = static_cast<std::byte*>(mapped_) + usable;
    data_ = guard - size;
    std::memset(data_, 0xa5, size);
    if (::mprotect(guard, page, PROT_NONE) != 0) throw std::bad_alloc();
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { ::munmap(mapped_, mapped_bytes_); }

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void* mapped_;
  size_t mapped_bytes_, size_;
  std::byte* data_;
};

}  // namespace taper::tests
