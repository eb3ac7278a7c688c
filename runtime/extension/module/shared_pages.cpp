#include "taper/runtime/extension/module/shared_pages.h"

#if defined(__linux__) && (!defined(__ANDROID__) || __ANDROID_API__ >= 30)
#define TAPER_HAS_SHARED_PAGES
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#endif

namespace taper {

#ifdef TAPER_HAS_SHARED_PAGES

namespace {

// A refusal leaves what was mapped before: Linux counts mappings first.
bool map_over(Span<std::byte> place, int flags, int file, size_t offset) {
  return ::mmap(place.data(), static_cast<size_t>(place.size()), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_FIXED | flags, file, static_cast<off_t>(offset)) != MAP_FAILED;
}

/// What a process has only so many of.
class Supply {
 public:
  explicit Supply(index_t most) : most_(most) {}
  bool take(index_t count) {
    if (used_.fetch_add(count) + count <= most_) return true;
    return used_.fetch_sub(count), false;
  }
  void give_back(index_t count) { used_.fetch_sub(count); }

 private:
  const index_t most_;
  std::atomic<index_t> used_{0};
};

Supply& files() {
  static Supply& supply = *new Supply([] {
    rlimit limit{};
    const bool is_told = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
    constexpr rlim_t most = 1 << 20;
    return static_cast<index_t>((is_told && limit.rlim_cur < most ? limit.rlim_cur : most) / 4);
  }());
  return supply;
}

Supply& places() {
  static Supply& supply = *new Supply([] {
    constexpr index_t usual = 65530, mappings = 2;  // that a place adds
    index_t most = 0;
    std::ifstream told("/proc/sys/vm/max_map_count");
    return (told >> most ? most : usual) / 4 * 3 / mappings;
  }());
  return supply;
}

}  // namespace

std::unique_ptr<SharedPages> SharedPages::create() {
  if (!files().take(1)) return nullptr;
  const int file = ::memfd_create("taper", MFD_CLOEXEC);
  if (file < 0) return files().give_back(1), nullptr;
  return std::unique_ptr<SharedPages>(new SharedPages(file));
}

SharedPages::~SharedPages() {
  ::close(file_);
  files().give_back(1);
}

bool SharedPages::reserve(index_t count) { return places().take(count); }
void SharedPages::give_back(index_t count) { places().give_back(count); }

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
bool SharedPages::reserve(index_t) { return false; }
void SharedPages::give_back(index_t) {}

#endif

}  // namespace taper
