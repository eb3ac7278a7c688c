#include "taper/runtime/extension/module/mapped_file.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#else
#include <fstream>
#endif

namespace taper {
namespace {

constexpr std::align_val_t alignment{64};

// nullptr: there is not as much memory.
std::byte* allocate(size_t size) {
  return static_cast<std::byte*>(::operator new(size, alignment, std::nothrow));
}

/// Read-only files that are mapped now.
struct Mapped {
  std::mutex mutex;
  std::map<const std::byte*, index_t> sizes;
};
// never destroyed: files may be closed late
Mapped& mapped() {
  static Mapped& mapped = *new Mapped();
  return mapped;
}

}  // namespace

void MappedFile::swap(MappedFile& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(is_mapped_, other.is_mapped_);
  std::swap(identity_, other.identity_);
}

#if defined(__unix__) || defined(__APPLE__)

namespace {

// A private mapping fetches all pages at once. This takes a fifth of the time that it takes to
// fetch each page when it is touched. The pages are fetched before they become writable, or they
// would be copied.
#ifdef MAP_POPULATE
constexpr int private_and_present = MAP_PRIVATE | MAP_POPULATE;
#else
constexpr int private_and_present = MAP_PRIVATE;
#endif

// False, with errno: the file is shorter by now, or its device fails.
bool read_all(int file, std::byte* bytes, size_t size) {
  constexpr size_t most_at_once = size_t{1} << 30;  // systems take less than 2 GB
  while (size > 0) {
    const ssize_t got = ::read(file, bytes, size < most_at_once ? size : most_at_once);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = EIO;
    if (got <= 0) return false;
    bytes += got, size -= static_cast<size_t>(got);
  }
  return true;
}

std::byte* read_file(int file, size_t size) {
  std::byte* const bytes = allocate(size);
  if (bytes == nullptr || read_all(file, bytes, size)) return bytes;
  const int error = errno;
  ::operator delete(bytes, alignment);
  errno = error;
  return nullptr;
}

// A number is not given to another file while this one is mapped.
MappedFile::Identity identity_of(const struct stat& s) {
#ifdef __APPLE__
  const struct timespec& written = s.st_mtimespec;
#else
  const struct timespec& written = s.st_mtim;
#endif
  return {static_cast<uint64_t>(s.st_dev), static_cast<uint64_t>(s.st_ino),
          static_cast<uint64_t>(s.st_size), static_cast<uint64_t>(written.tv_sec),
          static_cast<uint64_t>(written.tv_nsec)};
}

uintptr_t page_bytes() { return static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)); }

std::byte* map_file(int file, size_t size, bool writable) {
  void* const mapped =
      ::mmap(nullptr, size, PROT_READ, writable ? private_and_present : MAP_PRIVATE, file, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (writable) (void)::mprotect(mapped, size, PROT_READ | PROT_WRITE);
  return static_cast<std::byte*>(mapped);
}

/// Of a file that is mapped.
void give_back_pages(Span<const std::byte> bytes) {
  const uintptr_t page = page_bytes(), from = reinterpret_cast<uintptr_t>(bytes.data()),
                  begin = (from + page - 1) / page * page,
                  end = (from + static_cast<uintptr_t>(bytes.size())) / page * page;
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

Span<const std::byte> MappedFile::readable() const {
  const index_t page = static_cast<index_t>(page_bytes());
  return {data_, is_mapped_ ? (size_ + page - 1) / page * page : size_};
}

void MappedFile::give_back(Span<const std::byte> bytes) const {
  if (is_mapped_) give_back_pages(bytes);
}
void MappedFile::give_back_of_any(Span<const std::byte> bytes) {
  Mapped& all = mapped();
  const std::lock_guard<std::mutex> lock(all.mutex);  // the file stays mapped
  auto file = all.sizes.upper_bound(bytes.data());
  if (file == all.sizes.begin()) return;
  --file;
  if (bytes.end() <= file->first + file->second) give_back_pages(bytes);
}

bool MappedFile::open(const std::string& path, std::string& why, Access access) {
  // O_NONBLOCK: a pipe without a writer is refused below, and not waited for.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return why = path + ": " + std::strerror(errno), false;
  struct stat status {};
  MappedFile opened;
  const bool is_there =
      ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  errno = 0;
  if (is_there) {
    opened.is_mapped_ = access != Access::in_memory;
    opened.identity_ = identity_of(status);
    opened.size_ = static_cast<index_t>(status.st_size);
    const size_t size = static_cast<size_t>(opened.size_);
    opened.data_ = opened.is_mapped_ ? map_file(file, size, access == Access::private_copy)
                                     : read_file(file, size);
  }
  const int error = errno;
  ::close(file);
  if (opened.data_ == nullptr) {
    why = path + ": " +
          (is_there                  ? std::string("cannot be read: ") + std::strerror(error)
           : S_ISDIR(status.st_mode) ? "is a folder, not a file"
           : S_ISREG(status.st_mode) ? "is empty"
                                     : "is not a regular file");
    return false;
  }
  if (access == Access::read_only) {
    const std::lock_guard<std::mutex> lock(mapped().mutex);
    mapped().sizes[opened.data_] = opened.size_;
  }
  swap(opened);
  return true;
}

#else

Span<const std::byte> MappedFile::readable() const { return bytes(); }

void MappedFile::give_back(Span<const std::byte>) const {}
void MappedFile::give_back_of_any(Span<const std::byte>) {}

bool MappedFile::open(const std::string& path, std::string& why, Access) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return why = path + ": " + std::strerror(errno), false;
  const std::streamoff size = file.tellg();
  file.seekg(0);
  MappedFile opened;
  if (size > 0) opened.data_ = allocate(static_cast<size_t>(size));
  opened.size_ = static_cast<index_t>(size);
  if (opened.data_ == nullptr ||
      !file.read(reinterpret_cast<char*>(const_cast<std::byte*>(opened.data_)), size))
    return why = path + ": cannot be read", false;
  swap(opened);
  return true;
}

#endif

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  std::byte* const bytes = const_cast<std::byte*>(data_);
#if defined(__unix__) || defined(__APPLE__)
  if (is_mapped_) {
    {
      const std::lock_guard<std::mutex> lock(mapped().mutex);
      mapped().sizes.erase(data_);
    }
    ::munmap(bytes, static_cast<size_t>(size_));
    return;
  }
#endif
  ::operator delete(bytes, alignment);
}

}  // namespace taper
