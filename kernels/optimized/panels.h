// Weights in panels of sixteen, as the loader packs them once. See Layout.
#pragma once
#include "taper/kernels/kernel.h"

namespace taper::optimized {

/// A packed matrix (across, depth).
struct PackedMatrix {
  const float* data = nullptr;  ///< nullptr: the operand is not packed
  index_t depth = 0;

  index_t panel_floats() const { return panel_width * depth; }
  const float* at(index_t i, index_t k) const {
    return data + i / panel_width * panel_floats() + k * panel_width + i % panel_width;
  }
};

/// The bytes of an f32 matrix in panels. 0 if it has fewer than sixteen columns: a panel would be
/// mostly zeros.
size_t bytes_of_panels_of_first(const TensorRef& dense);
size_t bytes_of_panels_of_last(const TensorRef& dense);
void pack_panels_of_first(const TensorRef& dense, void* packed);
void pack_panels_of_last(const TensorRef& dense, void* packed);
/// The same for weights of convolutions. Weights with one input channel are never packed.
size_t bytes_of_filter_panels(const TensorRef& dense);

}  // namespace taper::optimized
