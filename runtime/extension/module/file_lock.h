#pragma once
#include <string>

namespace taper {

/// Held by the one process that may change a file, from when it reads the file until it has written
/// it again. The lock is a file beside it, "PATH.taper-lock", which goes with the lock. The system
/// ends the lock with the process, so what a killed process leaves locks nobody out. Anything else
/// of that name is left as it is, and nobody gets the lock.
///
/// Systems without locks of POSIX, and file systems without any, give the lock to everybody.
class FileLock {
 public:
  FileLock() = default;
  FileLock(const FileLock&) = delete;
  ~FileLock();
  /// False: `why` says in words who has the lock, or why none can be made.
  bool take(const std::string& path, std::string& why);

 private:
  int file_ = -1;
  std::string path_;  ///< of the lock
};

}  // namespace taper
