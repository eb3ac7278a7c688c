#include "taper/runtime/extension/module/leftovers.h"

#include <filesystem>
#include <system_error>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace taper {

#if defined(__unix__) || defined(__APPLE__)

namespace {

namespace fs = std::filesystem;

bool is_partial_of(const std::string& name, const std::string& target) {
  const std::string end = ".partial";
  const size_t begin = target.size() + 1;
  if (name.size() <= begin + end.size() || name.compare(0, begin, target + ".") != 0 ||
      name.compare(name.size() - end.size(), end.size(), end) != 0)
    return false;
  return name.find_first_not_of("0123456789", begin) == name.size() - end.size();
}

int open_to_lock(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

}  // namespace

void remove_leftovers(const std::string& target) {
  const fs::path path = target;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!is_partial_of(at->path().filename().string(), path.filename().string())) continue;
    const int file = open_to_lock(at->path().string());
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) (void)::unlink(at->path().c_str());
    ::close(file);
  }
}

WriterLock::~WriterLock() {
  if (file_ >= 0) ::close(file_);
}

bool WriterLock::take(const std::string& partial) {
  if (file_ >= 0) ::close(file_);
  file_ = open_to_lock(partial);
  if (file_ < 0) return false;
  // some file systems have no locks: nobody removes files there
  (void)::flock(file_, LOCK_EX);
  struct stat status {};
  return ::fstat(file_, &status) == 0 && status.st_nlink > 0;
}

#else

void remove_leftovers(const std::string&) {}
WriterLock::~WriterLock() = default;
bool WriterLock::take(const std::string&) { return true; }

#endif

}  // namespace taper
