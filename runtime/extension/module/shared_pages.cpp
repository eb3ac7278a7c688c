#include "taper/runtime/extension/module/shared_pages.h"

#if defined(__linux__) && (!defined(__ANDROID__) || __ANDROID_API__ >= 30)
#define TAPER_HAS_SHARED_PAGES
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>
#endif

namespace taper {

#ifdef TAPER_HAS_SHARED_PAGES

namespace {

// A refusal leaves what was mapped before: Linux counts mappings first.
bool map_over(Span<std::byte> place, int flags, int file, size_t offset) {
  return ::mmap(place.data(), static_cast<size_t>(place.size()), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_FIXED | flags, file, static_cast<off_t>(offset)) != MAP_FAILED;
}

}  // namespace

std::unique_ptr<SharedPages> SharedPages::create() {
  const int file = ::memfd_create("taper", MFD_CLOEXEC);
  return file < 0 ? nullptr : std::unique_ptr<SharedPages>(new SharedPages(file));
}

SharedPages::~SharedPages() { ::close(file_); }

size_t SharedPages::page_bytes() {
  static const auto size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

bool SharedPages::append(Span<const std::byte> pages) {
  for (index_t done = 0; done < pages.size();) {
    const ssize_t written =
        ::pwrite(file_, pages.data() + done, static_cast<size_t>(pages.size() - done),
                 static_cast<off_t>(size_) + done);
    if (written <= 0) return false;
    done += written;
  }
  size_ += static_cast<size_t>(pages.size());
  return true;
}

bool SharedPages::put(size_t offset, Span<std::byte> place) const {
  return map_over(place, 0, file_, offset);
}

bool SharedPages::clear(Span<std::byte> place) { return map_over(place, MAP_ANONYMOUS, -1, 0); }

#else

std::unique_ptr<SharedPages> SharedPages::create() { return nullptr; }
SharedPages::~SharedPages() = default;
size_t SharedPages::page_bytes() { return 4096; }
bool SharedPages::append(Span<const std::byte>) { return false; }
bool SharedPages::put(size_t, Span<std::byte>) const { return false; }
bool SharedPages::clear(Span<std::byte>) { return false; }

#endif

}  // namespace taper
