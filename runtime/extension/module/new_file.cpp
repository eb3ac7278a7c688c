#include "taper/runtime/extension/module/new_file.h"

#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <unistd.h>
#endif

namespace taper {
namespace {

// An empty file that only its owner may read.
void create_for_owner(const std::string& path) {
#if defined(__unix__) || defined(__APPLE__)
  const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (file >= 0) ::close(file);
#else
  (void)path;
#endif
}

}  // namespace

NewFile::NewFile(const std::string& path, Readers readers) : path_(path), readers_(readers) {
  remove_leftovers(path);
  constexpr int tries = 3;
  for (int i = 0; i < tries; ++i) {
    partial_ = path + "." + std::to_string(std::random_device()()) + ".partial";
    if (readers == Readers::as_before_or_owner) create_for_owner(partial_);
    out_.open(partial_, std::ios::binary);
    if (!note(out_.good()) || lock_.take(partial_)) return;
    out_.close();
  }
}

NewFile::~NewFile() {
  std::error_code ignored;
  if (!finished_) std::filesystem::remove(partial_, ignored);
}

bool NewFile::write(size_t place, const void* bytes, size_t size) {
  const std::lock_guard lock(mutex_);
  out_.seekp(static_cast<std::streamoff>(place));
  out_.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  return note(out_.good());
}

bool NewFile::finish() {
  out_.close();
  std::error_code error;
  if (!note(out_.good())) return false;
  if (readers_ == Readers::as_before_or_owner) {
    const std::filesystem::file_status before = std::filesystem::status(path_, error);
    if (std::filesystem::exists(before))
      std::filesystem::permissions(partial_, before.permissions(), error);
  }
  std::filesystem::rename(partial_, path_, error);
  if (error) error_ = error.value();
  return finished_ = !error;
}

std::string NewFile::why() const { return std::generic_category().message(error_); }

// Keeps the reason of the first failure.
bool NewFile::note(bool good) {
  if (!good && error_ == 0) error_ = errno;
  return good;
}

}  // namespace taper
