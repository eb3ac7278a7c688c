#pragma once
#include <string>

#include "taper/exporter/eager/location.h"
#include "taper/exporter/error.h"

namespace taper {

/// A mistake in the use of eager functions. The message says where, what, and what is allowed:
/// `train_lenet.cpp:31: linear: input (64, 784) does not fit weight (120, 400): the last dimension
/// must be 400`
class EagerError : public ExportError {
 public:
  EagerError(Location at, const std::string& message)
      : ExportError(at.known() ? at.to_string() + ": " + message : message), at_(at) {}
  Location where() const { return at_; }

 private:
  Location at_;
};

/// The size of a result depends on the elements of a tensor, which a trace does not know.
class DataDependentError : public EagerError {
 public:
  using EagerError::EagerError;
};

}  // namespace taper
