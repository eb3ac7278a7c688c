#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "taper/runtime/core/span.h"

namespace taper {

/// A file's bytes, mapped where the system can, otherwise read. At an address that is a multiple of
/// 64.
class MappedFile {
 public:
  enum class Access : uint8_t {
    read_only,
    private_copy,  ///< what is written stays in memory: pages are copied when that happens
  };

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept { return swap(other), *this; }
  ~MappedFile();

  /// False if the file cannot be read; `why` says so in words.
  bool open(const std::string& path, std::string& why, Access access = Access::read_only);
  Span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  void swap(MappedFile& other) noexcept;
  const std::byte* data_ = nullptr;
  index_t size_ = 0;
};

}  // namespace taper
