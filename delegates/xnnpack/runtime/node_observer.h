// Who is told how long the nodes of a part took.
#pragma once
#include <cstddef>
#include <cstdint>

namespace taper::delegates::xnnpack {

class NodeObserver {
 public:
  struct Node {
    const char* name;    ///< the library's: "Fully Connected (NC, F32) GEMM"
    const char* source;  ///< the model's: "linear at net.py:14 (fc1)"; "" if it is not known
    uint64_t us;
  };
  /// After each call of a part: its nodes in order, without those that the library fused into
  /// others. The texts are gone afterwards.
  virtual void ran(const Node* nodes, size_t count) = 0;
  /// A steady clock in microseconds, for what the library does not time itself.
  virtual uint64_t now_us() const = 0;

 protected:
  ~NodeObserver() = default;
};

}  // namespace taper::delegates::xnnpack
