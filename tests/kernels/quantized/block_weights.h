// Random weights in blocks, as kernels get them.
#pragma once
#include <random>
#include <vector>

#include "taper/kernels/quantized/panels.h"

namespace taper::tests {

inline const Layout all_layouts[] = {
    Layout::q4_0,       Layout::q4_1,       Layout::q5_0,       Layout::q5_1,    Layout::q8_0,
    Layout::q2_k,       Layout::q3_k,       Layout::q4_k,       Layout::q5_k,    Layout::q6_k,
    Layout::iq2_xxs,    Layout::iq2_xs,     Layout::iq2_s,      Layout::iq3_xxs, Layout::iq3_s,
    Layout::iq1_s,      Layout::iq1_m,      Layout::iq4_nl,     Layout::iq4_xs,  Layout::tq1_0,
    Layout::tq2_0,      Layout::mxfp4,      Layout::nvfp4,      Layout::nf4,     Layout::mxfp6_e2m3,
    Layout::mxfp6_e3m2, Layout::mxfp8_e4m3, Layout::mxfp8_e5m2, Layout::q2_z,    Layout::q3_z};

/// Weights of random bytes whose scales are small, and the same in panels.
class Weights {
 public:
  Weights(Layout layout, index_t rows, index_t depth)
      : Weights(layout, std::vector<index_t>{rows, depth}) {}
  /// The last of `sizes` is that of a row.
  Weights(Layout layout, const std::vector<index_t>& sizes, uint32_t seed = 1)
      : shape_(Shape::dense(sizes)) {
    const BlockSize block = block_of(layout);
    blocks_.resize(static_cast<size_t>(shape_.numel() / block.elements * block.bytes));
    std::mt19937 engine(seed);
    // bytes below 0x2c are small as the upper half of an f16 scale, wherever it lies
    for (std::byte& b : blocks_) b = static_cast<std::byte>(engine() % 0x2c);
    source_ = {blocks_.data(), &shape_, DType::f32, layout};
    if (!quantized::has_panels(layout)) return;
    panels_.resize(quantized::bytes_of_panels(source_));
    if (panels_.empty()) return;
    quantized::pack_panels(source_, panels_.data());
    packed_ = {panels_.data(), &shape_, DType::f32, quantized::panels_of(layout)};
  }
  Weights(const Weights&) = delete;

  /// As they lie, and in panels if there are any.
  std::vector<const TensorRef*> refs() const {
    std::vector<const TensorRef*> refs{&source_};
    if (!panels_.empty()) refs.push_back(&packed_);
    return refs;
  }
  quantized::BlockMatrix matrix() const { return quantized::BlockMatrix(source_); }

 private:
  Shape shape_;
  std::vector<std::byte> blocks_, panels_;
  TensorRef source_, packed_;
};

}  // namespace taper::tests
