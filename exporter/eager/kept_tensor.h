// What the tape keeps of a tensor for backward. Inside a checkpoint (checkpoint.h) it keeps
// nothing, and the tensor is computed again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "taper/exporter/eager/tensor.h"

namespace taper::eager {

/// One call of `checkpoint`, as long as the tape needs it.
class Checkpoint;

/// A tensor that is kept, and the version of its storage at that time.
class KeptTensor {
 public:
  KeptTensor() = default;
  /// Inside a checkpoint it remembers only which tensor of the checkpoint this is. A leaf that
  /// requires a gradient is always kept: its owner keeps it, too.
  explicit KeptTensor(const Tensor& tensor);

  bool defined() const { return tensor_.defined() || checkpoint_ != nullptr; }
  /// The tensor. Runs the checkpoint's function again if the tensor is not there; it is off the
  /// tape then.
  Tensor get() const;
  /// The version of the storage that `get` gives, when the tensor was kept.
  uint64_t version() const;
  /// Frees what was computed again, until the next `get`.
  void forget() const;

 private:
  Tensor tensor_;
  uint64_t version_ = 0;
  std::shared_ptr<Checkpoint> checkpoint_;  ///< nullptr: `tensor_` is kept
  size_t slot_ = 0;                         ///< among the tensors of the checkpoint
};

/// Ends the second run of a checkpoint's function, by an exception, once it has given all tensors.
/// What records on the tape calls this when its node is complete.
void end_complete_run();

}  // namespace taper::eager
