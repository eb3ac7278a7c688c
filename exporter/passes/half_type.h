// The ranges and roundings of f16 and bf16, and who reads them. Internal to passes.
#pragma once
#include <memory>
#include <span>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/target/kernel_table.h"

namespace taper::passes {

inline std::span<const float> f32_elements(const ir::Payload& payload) {
  return {reinterpret_cast<const float*>(payload.bytes.get()), payload.size_bytes / sizeof(float)};
}

class HalfType {
 public:
  explicit HalfType(DType dtype) : dtype_(dtype) {}

  DType dtype() const { return dtype_; }
  /// That of f32 constants in these halves.
  Layout layout() const { return dtype_ == DType::f16 ? Layout::dense_f16 : Layout::dense_bf16; }
  float largest() const { return dtype_ == DType::f16 ? 65504.0f : 0x1.fep127f; }

  /// An f32 payload in halves, rounded to nearest even. Finite elements stay finite.
  std::shared_ptr<const ir::Payload> convert(const ir::Payload& payload) const;

 private:
  DType dtype_;
};

/// Whether all `candidates` for a node read its argument `i`, which is `v`, in halves of this
/// layout. `v` must show its whole constant, with strides that they take.
bool read_in_halves(const target::Candidates& candidates, const ir::Node& node, size_t i,
                    const ir::Value& v, Layout layout);

}  // namespace taper::passes
