#pragma once
#include <stdexcept>

namespace taper {

/// What the host side throws: the message says what failed, where, and what to do about it.
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

}  // namespace taper
