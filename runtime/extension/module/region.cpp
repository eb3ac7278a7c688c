#include "taper/runtime/extension/module/region.h"

#include <cstdint>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#else
#include <cstring>
#include <new>
#endif

namespace taper {

#if defined(__unix__) || defined(__APPLE__)

namespace {
#ifdef MAP_NORESERVE  // without it Linux refuses more than it could give at once
constexpr int no_reserve = MAP_NORESERVE;
#else
constexpr int no_reserve = 0;
#endif

// The system clears a large page with one fault instead of 512. But many of them are slow to find
// when free memory is in pieces, or a virtual machine has to ask its host for it.
constexpr size_t most_in_large_pages = size_t{64} << 20;
}  // namespace

Region::Region(size_t size, Use use) : size_(size > 0 ? size : 1) {
  if (size > PTRDIFF_MAX) return;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (use == Use::part ? no_reserve : 0);
  void* mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED) return;
  data_ = static_cast<std::byte*>(mapped);
#ifdef MADV_HUGEPAGE
  if (use == Use::often || (use == Use::now && size <= most_in_large_pages))
    (void)::madvise(mapped, size_, MADV_HUGEPAGE);  // a wish
#endif
}

Region::~Region() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

#else

Region::Region(size_t size, Use) : size_(size > 0 ? size : 1) {
  if (size > PTRDIFF_MAX) return;
  data_ = static_cast<std::byte*>(::operator new(size_, std::align_val_t(64), std::nothrow));
  if (data_ != nullptr) std::memset(data_, 0, size_);
}

Region::~Region() {
  if (data_ != nullptr) ::operator delete(data_, std::align_val_t(64));
}

#endif

Region::Region(Region&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}

}  // namespace taper
