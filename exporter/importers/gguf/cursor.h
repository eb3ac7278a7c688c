// Reads numbers and texts from the bytes of a GGUF file, and never beyond them.
#pragma once
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "taper/exporter/io/array.h"

namespace taper::gguf {

class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::string file)
      : bytes_(bytes), file_(std::move(file)) {}

  size_t position() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }

  template <class T>
  T number(const char* what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }
  std::string_view text(const char* what) {
    const auto length = number<uint64_t>(what);
    const std::span<const std::byte> bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const std::byte> take(uint64_t count, const char* what) {
    if (count > left())
      fail(std::string("it is cut short: ") + what + " at byte " + std::to_string(at_) + " needs " +
           std::to_string(count) + " bytes, and " + std::to_string(left()) + " are left");
    const std::span<const std::byte> taken = bytes_.subspan(at_, static_cast<size_t>(count));
    at_ += static_cast<size_t>(count);
    return taken;
  }
  /// A count of things that take `least` bytes each.
  uint64_t count(const char* what, uint64_t least) {
    const auto n = number<uint64_t>(what);
    if (n > left() / least)
      fail("it is cut short: it claims " + std::to_string(n) + " " + what + ", and " +
           std::to_string(left()) + " bytes are left");
    return n;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw io::FileError(file_ + ": " + what);
  }

 private:
  std::span<const std::byte> bytes_;
  std::string file_;
  size_t at_ = 0;
};

}  // namespace taper::gguf
