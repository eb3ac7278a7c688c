#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "taper/runtime/core/span.h"

namespace taper {

/// Takes pieces of a region that the caller owns. Pieces are never given back. A *measuring* arena
/// has no region: it hands out nullptr and counts what the same calls would take. So the same code
/// measures and builds.
class Arena {
 public:
  static Arena measuring() { return Arena(); }
  explicit Arena(Span<std::byte> region)
      : begin_(region.data()), size_(static_cast<size_t>(region.size())), measuring_(false) {}

  /// `count` objects, not initialised; nullptr if there is no room. Check `exhausted()`, not the
  /// pointer: a measuring arena always gives nullptr.
  template <class T>
  T* take(index_t count, size_t alignment = alignof(T)) {
    return static_cast<T*>(take_bytes(count, sizeof(T), alignment));
  }

  /// Whether pieces that are taken from now on start as zeros.
  void set_clearing(bool clears) { clears_ = clears; }

  bool is_measuring() const { return measuring_; }
  bool exhausted() const { return exhausted_; }
  /// The bytes taken so far, with the slack that an unaligned region needs.
  size_t used() const { return used_; }

 private:
  Arena() = default;
  void* take_bytes(index_t count, size_t size, size_t alignment) {
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow(static_cast<size_t>(count), size, &bytes))
      return exhausted_ = true, nullptr;
    const uintptr_t at = reinterpret_cast<uintptr_t>(begin_) + used_;
    const size_t padding = (alignment - at % alignment) % alignment;
    size_t end;
    if (__builtin_add_overflow(used_ + padding, bytes, &end) || (!measuring_ && end > size_))
      return exhausted_ = true, nullptr;
    void* piece = measuring_ ? nullptr : begin_ + used_ + padding;
    used_ = end;
    if (clears_ && piece != nullptr) std::memset(piece, 0, bytes);
    return piece;
  }

  std::byte* begin_ = nullptr;
  size_t size_ = 0, used_ = 0;
  bool measuring_ = true, exhausted_ = false, clears_ = false;
};

}  // namespace taper
