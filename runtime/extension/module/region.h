#pragma once
#include <cstddef>

#include "taper/runtime/core/span.h"

namespace taper {

/// Memory for a program, all zeros, at a multiple of 64. It is reserved at once, but the system
/// gives a page only when the page is touched. A method that could take a batch of 4096 pays only
/// for the batch that it runs.
class Region {
 public:
  enum class Use {
    all,    ///< the system refuses more memory than the machine has
    part,   ///< the region may be larger than the machine's memory
    now,    ///< as `all`, and all of it is written soon: a small region gets large pages
    often,  ///< as `now`, and all of it is read again and again: it gets large pages in any case
  };

  /// Check `is_there()` afterwards: the system may refuse.
  explicit Region(size_t size, Use use = Use::all);
  Region(Region&& other) noexcept;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();

  bool is_there() const { return data_ != nullptr; }
  operator Span<std::byte>() const { return {data_, static_cast<index_t>(size_)}; }

 private:
  std::byte* data_ = nullptr;
  size_t size_;
};

}  // namespace taper
