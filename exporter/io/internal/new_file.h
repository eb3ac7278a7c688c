// A file that is written beside another one and takes its place when it is complete. POSIX.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace taper::io::internal {

/// While it is written the file has no name where the system allows that (Linux: O_TMPFILE), so
/// nothing is left of it if the program is killed. Elsewhere, and for the moment of replacing an
/// older file, it is called "<target>.<number>.partial" and locked; what a killed program left
/// under such a name is removed by the next one that writes the target.
class NewFile {
 public:
  enum class Name { none_if_possible, partial };

  /// `target`: no symbolic link. `shown`: what messages call it. This and all functions throw
  /// FileError.
  NewFile(std::filesystem::path target, std::string shown, Name name = Name::none_if_possible);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  /// Without `replace_target`, nothing is left.
  ~NewFile();

  void write(uint64_t offset, std::span<const std::byte> bytes);

  /// Brings the bytes to the disk, then gives them the target's name. Who looks finds the old file
  /// or the whole new one, even after a power failure.
  void replace_target();

 private:
  bool open_without_name();
  void open_partial();
  void link_partial();
  void lock() const;
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path target_, partial_;  ///< `partial_` is empty while the file has no name
  std::string shown_;
  int file_ = -1;
};

}  // namespace taper::io::internal
