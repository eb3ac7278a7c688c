#include "taper/runtime/extension/module/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#else
#include <cstdio>
#include <new>
#endif

namespace taper {

void MappedFile::swap(MappedFile& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
}

#if defined(__unix__) || defined(__APPLE__)

namespace {
// Who copies what he writes reads all first: pages are fetched at once, which takes a fifth of the
// time of fetching each when it is touched. Before they may be written: then they would be copied.
#ifdef MAP_POPULATE
constexpr int private_and_present = MAP_PRIVATE | MAP_POPULATE;
#else
constexpr int private_and_present = MAP_PRIVATE;
#endif
}  // namespace

bool MappedFile::open(const std::string& path, std::string& why, Access access) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return why = path + ": " + std::strerror(errno), false;
  struct stat status {};
  void* mapped = MAP_FAILED;
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
    mapped = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ,
                    access == Access::read_only ? MAP_PRIVATE : private_and_present, file, 0);
  if (mapped != MAP_FAILED && access == Access::private_copy)
    (void)::mprotect(mapped, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE);
  ::close(file);
  if (mapped == MAP_FAILED)
    return why = path + ": not a file with content that can be mapped", false;
  MappedFile opened;
  opened.data_ = static_cast<const std::byte*>(mapped);
  opened.size_ = static_cast<index_t>(status.st_size);
  swap(opened);
  return true;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), static_cast<size_t>(size_));
}

#else

bool MappedFile::open(const std::string& path, std::string& why, Access) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return why = path + ": " + std::strerror(errno), false;
  std::fseek(file, 0, SEEK_END);
  const long size = std::ftell(file);
  std::fseek(file, 0, SEEK_SET);
  MappedFile opened;
  if (size > 0) {
    void* bytes = ::operator new(static_cast<size_t>(size), std::align_val_t(64));
    opened.data_ = static_cast<const std::byte*>(bytes), opened.size_ = size;
    if (std::fread(bytes, 1, static_cast<size_t>(size), file) != static_cast<size_t>(size))
      opened.size_ = 0;
  }
  std::fclose(file);
  if (opened.size_ <= 0) return why = path + ": cannot be read", false;
  swap(opened);
  return true;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::operator delete(const_cast<std::byte*>(data_), std::align_val_t(64));
}

#endif

}  // namespace taper
