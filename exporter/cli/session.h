// The file of the option --session, before the model is loaded.
#pragma once
#include <string>

#include "taper/runtime/extension/module/file_lock.h"

namespace taper::cli {

/// Belongs to one command from its start to its end, so that two of them do not overwrite what the
/// other one saves.
class SessionOption {
 public:
  /// "": none. Throws ExportError if the file could not be written at the end, or if another
  /// process uses it.
  explicit SessionOption(std::string path);

  const std::string& path() const { return path_; }
  bool is_given() const { return !path_.empty(); }
  bool is_there() const { return is_there_; }  ///< when the command began
  /// Throws ExportError if a chat wrote it, whose messages another file would lack.
  void require_no_conversation() const;

 private:
  const std::string path_;
  FileLock lock_;
  bool is_there_ = false;
};

}  // namespace taper::cli
