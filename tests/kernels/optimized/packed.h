// Packed weights for tests.
#pragma once
#include <cstring>
#include <limits>
#include <vector>

#include "taper/kernels/optimized/panels.h"
#include "taper/kernels/portable/widened.h"

namespace taper::tests {

/// The f32 elements of a tensor in halves, with unusable numbers behind them; for Layout::dense,
/// the tensor itself.
class Stored {
 public:
  Stored(const TensorRef& f32, Layout layout) : ref_(f32) {
    if (layout == Layout::dense) return;
    ref_.layout = layout;
    const index_t count = portable::Halves(ref_).count;
    halves_.assign(static_cast<size_t>(count) + 32, 0x7fff);
    optimized::narrow_small<optimized::CpuLevel::portable>(
        is_in_f16(layout) ? DType::f16 : DType::bf16, count, static_cast<const float*>(f32.data),
        halves_.data());
    ref_.data = halves_.data();
  }
  const TensorRef* ref() const { return &ref_; }
  /// The same as f32 again; none for Layout::dense.
  std::vector<float> widened() const {
    if (halves_.empty()) return {};
    std::vector<float> wide(halves_.size());
    portable::widen(nullptr, ref_, wide.data());
    return wide;
  }

 private:
  std::vector<uint16_t> halves_;
  TensorRef ref_;
};

/// A tensor in the layout that its kernel reads, with unusable numbers behind it.
class Packed {
 public:
  Packed(const Packing& packing, const TensorRef& source) {
    using namespace optimized;
    auto bytes = packing.bytes;
    auto pack = packing.pack;
    if (packing.layout == Layout::panels_of_first)
      bytes = bytes_of_panels_of_first, pack = pack_first<CpuLevel::portable>;
    if (packing.layout == Layout::panels_of_last)
      bytes = bytes_of_panels_of_last, pack = pack_last<CpuLevel::portable>;
    if (packing.layout == Layout::f16_panels_of_first)
      bytes = bytes_of_f16_panels, pack = pack_f16_panels;
    if (packing.layout == Layout::bf16_panels_of_first)
      bytes = bytes_of_bf16_panels, pack = pack_bf16_panels;
    bytes_ = bytes(source);
    elements_.assign(bytes_ / sizeof(float) + 16, std::numeric_limits<float>::quiet_NaN());
    (packing.pack != nullptr ? packing.pack : pack)(source, elements_.data());
    ref_ = source, ref_.data = elements_.data(), ref_.layout = packing.layout;
  }
  const TensorRef* ref() const { return &ref_; }
  size_t bytes() const { return bytes_; }
  float operator[](size_t i) const { return elements_[i]; }
  uint16_t half(size_t i) const {
    uint16_t bits;
    std::memcpy(&bits, reinterpret_cast<const std::byte*>(elements_.data()) + 2 * i, sizeof bits);
    return bits;
  }

 private:
  size_t bytes_;
  std::vector<float> elements_;
  TensorRef ref_;
};

}  // namespace taper::tests
