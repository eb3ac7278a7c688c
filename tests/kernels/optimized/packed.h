// Packed weights for tests.
#pragma once
#include <limits>
#include <vector>

#include "taper/kernels/optimized/panels.h"

namespace taper::tests {

/// A tensor in the layout that its kernel reads, with unusable numbers behind it.
class Packed {
 public:
  Packed(const Packing& packing, const TensorRef& dense) {
    const bool first = packing.layout == Layout::panels_of_first;
    bytes_ =
        (first ? optimized::bytes_of_panels_of_first : optimized::bytes_of_panels_of_last)(dense);
    elements_.assign(bytes_ / sizeof(float) + 16, std::numeric_limits<float>::quiet_NaN());
    (packing.pack != nullptr ? packing.pack
     : first                 ? optimized::pack_panels_of_first
                             : optimized::pack_panels_of_last)(dense, elements_.data());
    ref_ = dense, ref_.data = elements_.data(), ref_.layout = packing.layout;
  }
  const TensorRef* ref() const { return &ref_; }
  size_t bytes() const { return bytes_; }
  float operator[](size_t i) const { return elements_[i]; }

 private:
  size_t bytes_;
  std::vector<float> elements_;
  TensorRef ref_;
};

}  // namespace taper::tests
