#include "taper/delegates/xnnpack/app/backend.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <new>

#include "taper/delegates/xnnpack/app/pack_folder.h"
#include "taper/runtime/extension/module/mapped_file.h"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

namespace taper::delegates::xnnpack {
namespace {

constexpr size_t large_page = size_t{1} << 21;
constexpr std::align_val_t alignment{64};

#if defined(__unix__) || defined(__APPLE__)

size_t whole_pages(size_t bytes) { return (bytes + large_page - 1) / large_page * large_page; }

/// A mapping of its own, so that the wish for large pages ends with it. Weights are read in each
/// call, and miss fewer entries of page tables in them. nullptr: there is no memory.
void* map(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  const size_t kept = whole_pages(bytes);
  void* mapped = ::mmap(nullptr, kept + large_page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  // what is too much before and behind
  const size_t before = -reinterpret_cast<uintptr_t>(mapped) % large_page;
  auto* memory = static_cast<std::byte*>(mapped) + before;
  if (before > 0) (void)::munmap(mapped, before);
  (void)::munmap(memory + kept, large_page - before);
#ifdef MADV_HUGEPAGE
  // of pages that are full: they take no more memory so
  (void)::madvise(memory, bytes / large_page * large_page, MADV_HUGEPAGE);
#endif
  return memory;
}
void unmap(void* memory, size_t bytes) { (void)::munmap(memory, whole_pages(bytes)); }

#else

void* map(size_t bytes) { return ::operator new(bytes, alignment, std::nothrow); }
void unmap(void* memory, size_t) { ::operator delete(memory, alignment); }

#endif

/// Of the heap. All that the library allocates of 2 MB or more is mapped, not weights alone.
class Heap final : public Memory {
 public:
  void* allocate(size_t bytes) override {
    void* memory = bytes < large_page ? ::operator new(bytes, alignment, std::nothrow) : map(bytes);
    if (memory == nullptr) return nullptr;
    bytes_ += bytes, ++allocations_;
    return memory;
  }
  void release(void* memory, size_t bytes) override {
    bytes_ -= bytes;
    if (bytes < large_page)
      ::operator delete(memory, alignment);
    else
      unmap(memory, bytes);
  }
  void was_packed(const void* elements, size_t bytes) override {
    MappedFile::give_back_of_any(
        {static_cast<const std::byte*>(elements), static_cast<index_t>(bytes)});
  }
  MemoryUse use() const { return {bytes_, allocations_}; }

 private:
  std::atomic<size_t> bytes_{0}, allocations_{0};
};

// never destroyed: programs may be closed late
Heap& heap() {
  static Heap& heap = *new Heap;  // without parentheses, which would write zeros to the reserve
  return heap;
}

}  // namespace

XnnpackBackend& backend() {
  static XnnpackBackend& backend = *new XnnpackBackend(heap());
  return backend;
}
XnnpackBackend& f16_backend() {
  static XnnpackBackend& backend = *new XnnpackBackend(heap(), Precision::f16);
  return backend;
}

void keep_packed_weights(const std::string& folder) {
  // never destroyed: programs read the files of earlier folders until they are closed
  static std::list<PackFolder>& folders = *new std::list<PackFolder>();
  PackFolder* files = folder.empty() ? nullptr : &folders.emplace_back(folder);
  backend().use_files(files);
  f16_backend().use_files(files);
}

MemoryUse memory_use() { return heap().use(); }

}  // namespace taper::delegates::xnnpack
