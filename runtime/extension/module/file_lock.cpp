#include "taper/runtime/extension/module/file_lock.h"

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#endif

namespace taper {

#if defined(__unix__) || defined(__APPLE__)

namespace {

// Whether a name still is that of an open file: its last owner may have removed it.
bool is_named(int file, const std::string& path) {
  struct stat open {
  }, named{};
  return ::fstat(file, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

constexpr size_t most_digits = 20;  // of the number of a process

// "" if the owner has not written it yet.
std::string number_in(int file) {
  char text[most_digits];
  const ssize_t count = ::pread(file, text, sizeof text, 0);
  return {text, count > 0 ? static_cast<size_t>(count) : 0};
}

// Locks hold the number of their process or nothing. What holds more is somebody's data.
bool is_lock(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_size <= static_cast<off_t>(most_digits) &&
         number_in(file).find_first_not_of("0123456789") == std::string::npos;
}

// A name that is a link leads to somebody's data, too.
bool is_foreign(int file, const std::string& path) {
  struct stat named {};
  if (file >= 0) return !is_lock(file);
  return ::lstat(path.c_str(), &named) == 0 && !S_ISREG(named.st_mode);
}

}  // namespace

bool FileLock::take(const std::string& path, std::string& why) {
  const std::string name = path + ".taper-lock";
  for (;;) {
    const int file =
        ::open(name.c_str(), O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    const int error = errno;
    if (is_foreign(file, name)) {
      if (file >= 0) ::close(file);
      why = name + " is in the way: it is no lock of Taper";
      return false;
    }
    if (file < 0) return why = name + ": " + std::strerror(error), false;
    if (::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      const std::string owner = number_in(file);
      ::close(file);
      why = "another process" + (owner.empty() ? "" : " (" + owner + ")") + " uses it";
      return false;
    }
    if (!is_named(file, name)) {  // locked too late
      ::close(file);
      continue;
    }
    const std::string own = std::to_string(::getpid());
    // the number is only for messages
    if (::ftruncate(file, 0) != 0 || ::pwrite(file, own.data(), own.size(), 0) < 0) errno = 0;
    file_ = file, path_ = name;
    return true;
  }
}

FileLock::~FileLock() {
  if (file_ < 0) return;
  if (is_named(file_, path_)) (void)::unlink(path_.c_str());
  ::close(file_);
}

#else

bool FileLock::take(const std::string&, std::string&) { return true; }
FileLock::~FileLock() = default;

#endif

}  // namespace taper
