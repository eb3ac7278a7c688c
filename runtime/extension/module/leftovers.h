#pragma once
#include <string>

namespace taper {

/// Files are written as "TARGET.NUMBER.partial" until they are whole. Removes those of this target
/// that killed processes left. Does nothing on systems without locks of POSIX.
void remove_leftovers(const std::string& target);

/// Held by who writes such a file, so that others leave it. The system ends it with the process.
class WriterLock {
 public:
  WriterLock() = default;
  WriterLock(const WriterLock&) = delete;
  ~WriterLock();
  /// False: somebody removed the file before it was locked.
  bool take(const std::string& partial);

 private:
  int file_ = -1;
};

}  // namespace taper
