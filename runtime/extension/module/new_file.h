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
  /// Who may read it: all whom the system lets, or whoever may read the file that it replaces, and
  /// only its owner if there is none.
  enum class Readers { usual, as_before_or_owner };

  explicit NewFile(const std::string& path, Readers readers = Readers::usual);
  NewFile(const NewFile&) = delete;
  ~NewFile();

  const std::string& partial() const { return partial_; }  ///< the other name
  /// False: it could not be written. Any thread may call it.
  bool write(size_t place, const void* bytes, size_t size);
  /// Why not all could be written, in the system's words.
  std::string why() const;
  bool flush() { return out_.flush().good(); }
  /// Gives the file its name. False: not all could be written.
  bool finish();

 private:
  bool note(bool good);

  const std::string path_;
  const Readers readers_;
  std::string partial_;
  std::ofstream out_;
  WriterLock lock_;
  std::mutex mutex_;
  int error_ = 0;
  bool finished_ = false;
};

}  // namespace taper
