#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "taper/runtime/core/span.h"

namespace taper {

/// A file's bytes, at an address that is a multiple of 64. They are mapped if the system can and
/// the caller wants it, otherwise read.
///
/// Nobody may shorten a file while it is mapped: to touch the missing part ends the program with
/// SIGBUS.
class MappedFile {
 public:
  enum class Access : uint8_t {
    read_only,
    private_copy,  ///< what is written stays in memory: pages are copied when that happens
    in_memory,     ///< read at once: what happens to the file later does not matter
  };

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept { return swap(other), *this; }
  ~MappedFile();

  /// False if the file cannot be read; `why` says so in words.
  bool open(const std::string& path, std::string& why, Access access = Access::read_only);
  Span<const std::byte> bytes() const { return {data_, size_}; }
  /// The bytes, and those behind them that may be read: a mapped file's last page, to its end.
  Span<const std::byte> readable() const;
  bool is_mapped() const { return is_mapped_; }
  bool holds(Span<const std::byte> bytes) const {
    return !std::less<>()(bytes.data(), data_) && !std::less<>()(data_ + size_, bytes.end());
  }

  /// Identifies a mapped file by device, inode number, size, and the time of the last write.
  using Identity = std::array<uint64_t, 5>;
  const Identity& identity() const { return identity_; }

  /// Tells the system that these bytes of a mapped file will not be read soon: they take no memory
  /// of the process until they are. Other threads may read them meanwhile. They are then read from
  /// the file again: what was written into it since opening may show. Replace a file by `rename`.
  void give_back(Span<const std::byte> bytes) const;
  /// The same, of the read-only file that holds them, if one does.
  static void give_back_of_any(Span<const std::byte> bytes);

 private:
  void swap(MappedFile& other) noexcept;
  const std::byte* data_ = nullptr;
  index_t size_ = 0;
  bool is_mapped_ = false;
  Identity identity_{};
};

}  // namespace taper
