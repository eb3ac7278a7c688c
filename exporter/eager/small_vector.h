#pragma once
#include <cstddef>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace taper::eager {

/// A vector whose first `n` elements lie in the object itself, for the short lists of one call. It
/// has some members of std::vector. It can be moved but not copied.
template <class T, size_t n>
class SmallVector {
  static_assert(std::is_nothrow_move_constructible_v<T>);

 public:
  SmallVector() = default;
  template <class Iterator>
  SmallVector(Iterator first, Iterator last) {
    reserve(static_cast<size_t>(std::distance(first, last)));
    std::uninitialized_copy(first, last, data_);
    size_ = static_cast<size_t>(std::distance(first, last));
  }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) free(), take(other);
    return *this;
  }
  ~SmallVector() { free(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }

  void reserve(size_t count) {
    if (count > capacity_) grow(count);
  }
  template <class... A>
  T& emplace_back(A&&... arguments) {
    if (size_ < capacity_)
      return *std::construct_at(data_ + size_++, std::forward<A>(arguments)...);
    T element(std::forward<A>(arguments)...);  // the arguments may lie in what moves now
    grow(2 * capacity_);
    return *std::construct_at(data_ + size_++, std::move(element));
  }
  void push_back(const T& element) { emplace_back(element); }
  void push_back(T&& element) { emplace_back(std::move(element)); }
  void pop_back() { std::destroy_at(data_ + --size_); }
  void clear() {
    std::destroy_n(data_, size_);
    size_ = 0;
  }

 private:
  T* inside() { return reinterpret_cast<T*>(inside_); }
  void grow(size_t capacity) {
    T* const wider = std::allocator<T>().allocate(capacity);
    std::uninitialized_move_n(data_, size_, wider);
    const size_t size = size_;
    free();
    data_ = wider, size_ = size, capacity_ = capacity;
  }
  void free() {
    clear();
    if (data_ != inside()) std::allocator<T>().deallocate(data_, capacity_);
  }
  /// Takes the elements of `other`; `*this` must be empty.
  void take(SmallVector& other) {
    if (other.data_ != other.inside()) {
      data_ = other.data_, size_ = other.size_, capacity_ = other.capacity_;
    } else {
      data_ = inside(), size_ = other.size_, capacity_ = n;
      std::uninitialized_move_n(other.data_, size_, data_);
      other.clear();
    }
    other.data_ = other.inside(), other.size_ = 0, other.capacity_ = n;
  }

  alignas(T) std::byte inside_[n * sizeof(T)];
  T* data_ = inside();
  size_t size_ = 0, capacity_ = n;
};

}  // namespace taper::eager
