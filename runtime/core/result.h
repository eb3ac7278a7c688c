#pragma once
#include <cassert>
#include <new>
#include <type_traits>
#include <utility>

#include "taper/runtime/core/error.h"

namespace taper {

/// A value, or the error that there is instead. It holds the `T` in place: no heap, no exceptions.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : error_(Error::ok) { new (&value_) T(std::move(value)); }
  Result(Error error) : error_(error) {
    assert(error != Error::ok && "a Result without a value needs an error");
  }
  Result(Result&& other) noexcept : error_(other.error_) {
    if (other.ok()) new (&value_) T(std::move(other.value_));
  }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  ~Result() {
    if (ok()) value_.~T();
  }

  bool ok() const { return error_ == Error::ok; }
  explicit operator bool() const { return ok(); }
  Error error() const { return error_; }

  /// The value. It is a programming error to ask a failed Result for it; this stops the program in
  /// every build.
  T& value() & {
    if (!ok()) __builtin_trap();
    return value_;
  }
  const T& value() const& {
    if (!ok()) __builtin_trap();
    return value_;
  }
  T&& value() && {
    if (!ok()) __builtin_trap();
    return std::move(value_);
  }
  T& operator*() & { return value(); }
  T* operator->() { return &value(); }

 private:
  Error error_;
  union {
    T value_;
  };
};

}  // namespace taper

#define TAPER_CONCAT_(a, b) a##b
#define TAPER_CONCAT(a, b) TAPER_CONCAT_(a, b)

/// `TAPER_LET(name, expression)`: binds `name` to the value of a `Result`, or returns its error.
#define TAPER_LET(name, ...)                                  \
  auto TAPER_CONCAT(taper_result_, __LINE__) = (__VA_ARGS__); \
  if (!TAPER_CONCAT(taper_result_, __LINE__).ok())            \
    return TAPER_CONCAT(taper_result_, __LINE__).error();     \
  auto name = std::move(TAPER_CONCAT(taper_result_, __LINE__)).value()
