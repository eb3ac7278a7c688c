#pragma once
#include <cassert>
#include <cstddef>
#include <type_traits>

namespace taper {

/// A count of elements, or a distance between them: 64 bits on a phone, 32 on a Cortex-M.
using index_t = std::ptrdiff_t;

/// A pointer and a count. A Span borrows the elements and never owns them.
template <class T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, index_t size) : data_(data), size_(size) {}
  template <std::size_t n>
  constexpr Span(T (&array)[n]) : data_(array), size_(static_cast<index_t>(n)) {}
  /// Made of anything with `data()` and `size()`: std::vector, std::array, another Span.
  template <class C, class = std::enable_if_t<
                         std::is_convertible_v<decltype(std::declval<C&>().data()), T*>>>
  constexpr Span(C&& container)
      : data_(container.data()), size_(static_cast<index_t>(container.size())) {}

  constexpr T* data() const { return data_; }
  constexpr index_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr T& operator[](index_t i) const {
    assert(i >= 0 && i < size_);
    return data_[i];
  }
  constexpr Span part(index_t from, index_t count) const {
    assert(from >= 0 && from + count <= size_);
    return {data_ + from, count};
  }

 private:
  T* data_ = nullptr;
  index_t size_ = 0;
};

}  // namespace taper
