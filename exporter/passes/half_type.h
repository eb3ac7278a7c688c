// The ranges and roundings of f16 and bf16. Internal to to_half.
#pragma once
#include <memory>
#include <span>

#include "taper/exporter/ir/graph.h"

namespace taper::passes {

inline std::span<const float> f32_elements(const ir::Payload& payload) {
  return {reinterpret_cast<const float*>(payload.bytes.get()), payload.size_bytes / sizeof(float)};
}

class HalfType {
 public:
  explicit HalfType(DType dtype) : dtype_(dtype) {}

  DType dtype() const { return dtype_; }
  float largest() const { return dtype_ == DType::f16 ? 65504.0f : 0x1.fep127f; }
  /// Whether x is finite and larger than the largest number of the dtype.
  bool is_too_large(float x) const;
  /// Whether x is not zero but rounds to zero.
  bool is_too_small(float x) const;

  /// The elements of an f32 payload, rounded to nearest even. Finite elements stay finite.
  std::shared_ptr<const ir::Payload> convert(const ir::Payload& payload) const;

 private:
  DType dtype_;
};

}  // namespace taper::passes
