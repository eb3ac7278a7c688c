#pragma once
#include <cstddef>
#include <fstream>
#include <mutex>
#include <string>

#include "taper/runtime/extension/module/leftovers.h"

namespace taper {

/// A file that is written under another name until it is whole, so that others see all of it or
/// nothing. It goes unless it is finished. What killed processes left of it goes, too.
class NewFile {
 public:
  explicit NewFile(const std::string& path);
  NewFile(const NewFile&) = delete;
  ~NewFile();

  const std::string& partial() const { return partial_; }  ///< the other name
  /// False: it could not be written. Any thread may call it.
  bool write(size_t place, const void* bytes, size_t size);
  bool flush() { return out_.flush().good(); }
  /// Gives the file its name. False: not all could be written.
  bool finish();

 private:
  const std::string path_;
  std::string partial_;
  std::ofstream out_;
  WriterLock lock_;
  std::mutex mutex_;
  bool finished_ = false;
};

}  // namespace taper
