#include "taper/delegates/xnnpack/app/backend.h"

#include <atomic>
#include <list>
#include <new>

#include "taper/delegates/xnnpack/app/pack_folder.h"
#include "taper/runtime/extension/module/mapped_file.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace taper::delegates::xnnpack {
namespace {

class Heap final : public Memory {
 public:
  void* allocate(size_t bytes) override {
    void* memory = ::operator new(bytes, alignment_of(bytes), std::nothrow);
    if (memory == nullptr) return nullptr;
    wish_for_large_pages(memory, bytes);
    bytes_ += bytes, ++allocations_;
    return memory;
  }
  void release(void* memory, size_t bytes) override {
    bytes_ -= bytes;
    ::operator delete(memory, alignment_of(bytes));
  }
  void was_packed(const void* elements, size_t bytes) override {
    MappedFile::give_back_of_any(
        {static_cast<const std::byte*>(elements), static_cast<index_t>(bytes)});
  }
  MemoryUse use() const { return {bytes_, allocations_}; }

 private:
  // Weights are read in each call. They miss fewer entries of page tables in pages of 2 MB.
  static constexpr size_t large_page = size_t{1} << 21;
  static std::align_val_t alignment_of(size_t bytes) {
    return std::align_val_t{bytes < large_page ? 64 : large_page};
  }
  // Of whole pages alone, which take no more memory so.
  static void wish_for_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#ifdef MADV_HUGEPAGE
    if (bytes >= large_page)
      (void)::madvise(memory, bytes / large_page * large_page, MADV_HUGEPAGE);
#endif
  }
  std::atomic<size_t> bytes_{0}, allocations_{0};
};

// never destroyed: programs may be closed late
Heap& heap() {
  static Heap& heap = *new Heap();
  return heap;
}

}  // namespace

XnnpackBackend& backend() {
  static XnnpackBackend& backend = *new XnnpackBackend(heap());
  return backend;
}

void keep_packed_weights(const std::string& folder) {
  // never destroyed: programs read the files of earlier folders until they are closed
  static std::list<PackFolder>& folders = *new std::list<PackFolder>();
  backend().use_files(folder.empty() ? nullptr : &folders.emplace_back(folder));
}

MemoryUse memory_use() { return heap().use(); }

}  // namespace taper::delegates::xnnpack
