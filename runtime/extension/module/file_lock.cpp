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

// "" if the owner has not written it yet.
std::string number_in(int file) {
  char text[24];
  const ssize_t count = ::pread(file, text, sizeof text, 0);
  std::string number(text, count > 0 ? static_cast<size_t>(count) : 0);
  return number.find_first_not_of("0123456789") == std::string::npos ? number : "";
}

}  // namespace

bool FileLock::take(const std::string& path, std::string& why) {
  const std::string name = path + ".lock";
  for (;;) {
    const int file =
        ::open(name.c_str(), O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (file < 0) return why = name + ": " + std::strerror(errno), false;
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
  (void)::unlink(path_.c_str());
  ::close(file_);
}

#else

bool FileLock::take(const std::string&, std::string&) { return true; }
FileLock::~FileLock() = default;

#endif

}  // namespace taper
