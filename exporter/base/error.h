// What the host side throws.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

#include "taper/exporter/base/location.h"

namespace taper {

/// The message says what failed, where, and what to do about it.
class ExportError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A symbolic size was used where only a number will do: in an `if`, as a loop bound, converted to
/// an integer.
class SymbolicValueError : public ExportError {
 public:
  using ExportError::ExportError;
};

/// A mistake in a call of an eager function. The message says where, what is wrong, and what is
/// allowed:
/// `train_lenet.cpp:31: linear: input (64, 784) does not fit weight (120, 400): the last dimension
/// must be 400`
class EagerError : public ExportError {
 public:
  EagerError(Location at, const std::string& message)
      : ExportError(at.known() ? at.to_string() + ": " + message : message),
        at_(at),
        message_(message) {}
  /// In a decomposition or a derivative: at the place of the call that is computed.
  explicit EagerError(const std::string& message) : EagerError(place(), message) {}
  Location where() const { return at_; }
  const char* what() const noexcept override {
    return outer_.empty() ? ExportError::what() : outer_.c_str();
  }

  /// Puts the operator that was called in front of a message that names only one of its parts:
  /// "linear: in mm: …".
  void in_call_of(std::string_view op) {
    const std::string_view called = op.substr(0, op.find('.')), more = "_with_indices";
    if (!message_.starts_with(called))
      message_ = std::string(op) + ": in " + message_;
    else if (std::string_view(message_).substr(called.size()).starts_with(more))
      message_.erase(called.size(), more.size());  // max_pool2d is the half of another operator
    else
      return;
    outer_ = at_.known() ? at_.to_string() + ": " + message_ : message_;
  }

 private:
  Location at_;
  std::string message_, outer_;
};

/// The size of a result depends on the elements of a tensor, which a trace does not know.
class DataDependentError : public EagerError {
 public:
  using EagerError::EagerError;
};

}  // namespace taper
