// Weights in panels of sixteen, as the loader packs them once. See Layout.
#pragma once
#include "taper/kernels/optimized/microkernel.h"
#include "taper/kernels/optimized/small_floats.h"

namespace taper::optimized {

/// A Packing that is always asked for.
template <int argument>
constexpr Packing packs(Layout from, Layout layout, size_t (*bytes)(const TensorRef&),
                        void (*pack)(const TensorRef&, void*)) {
  return {argument, -1, from, layout, bytes, pack};
}

/// A packed matrix (across, depth).
struct PackedMatrix {
  const float* data = nullptr;  ///< nullptr: the operand is not packed
  index_t depth = 0;

  index_t panel_floats() const { return panel_width * depth; }
  const float* at(index_t i, index_t k) const {
    return data + i / panel_width * panel_floats() + k * panel_width + i % panel_width;
  }
};

/// Prefetches panels whose first one begins at `from`, for `next_depth` places along k, while
/// `count` tiles of `depth` steps are computed.
struct PrefetchOfPanels {
  const float* from;
  index_t share, step;

  PrefetchOfPanels(const float* panels, index_t next_depth, index_t depth, index_t count)
      : from(panels), share((next_depth + count - 1) / count * panel_width) {
    const index_t steps = depth > 0 ? depth : 1;
    step = (share * index_t{sizeof(float)} + steps - 1) / steps;
  }
  /// What tile i prefetches.
  NextPanels of_tile(index_t i) const { return {from + i * share, step}; }
};

/// A matrix in panels of halves. The rows of bf16_panels_of_first are pairs.
struct PackedHalves {
  const uint16_t* data = nullptr;  ///< nullptr: the operand is not such a matrix
  DType dtype = DType::f16;
  index_t depth = 0;

  index_t rows() const { return dtype == DType::bf16 ? (depth + 1) / 2 : depth; }
  index_t halves_of_row() const { return dtype == DType::bf16 ? 2 * panel_width : panel_width; }
  index_t panel_halves() const { return halves_of_row() * rows(); }
  /// Where column i of place k begins: the start of a panel, and for bf16 that of a pair.
  const uint16_t* at(index_t i, index_t k) const {
    return data + i / panel_width * panel_halves() +
           (dtype == DType::bf16 ? k / 2 : k) * halves_of_row();
  }
};

/// The bytes of a matrix in panels of f32. 0 if it has fewer than sixteen columns: a panel would be
/// mostly zeros. `source` has strides, and may be in halves.
size_t bytes_of_panels_of_first(const TensorRef& source);
size_t bytes_of_panels_of_last(const TensorRef& source);
/// The same for weights of convolutions. Weights with one input channel are never packed.
size_t bytes_of_filter_panels(const TensorRef& source);
/// The same in panels of halves.
size_t bytes_of_f16_panels(const TensorRef& source);
size_t bytes_of_bf16_panels(const TensorRef& source);

void pack_panels_of_first(const TensorRef& source, const Microkernels&,
                          const portable::SmallFloats&, void* packed);
void pack_panels_of_last(const TensorRef& source, const Microkernels&, const portable::SmallFloats&,
                         void* packed);
void pack_f16_panels(const TensorRef& source, void* packed);
void pack_bf16_panels(const TensorRef& source, void* packed);

/// The same for a Packing.
template <CpuLevel level>
void pack_first(const TensorRef& source, void* packed) {
  pack_panels_of_first(source, packing_microkernels<level>(), small_floats<level>, packed);
}
template <CpuLevel level>
void pack_last(const TensorRef& source, void* packed) {
  pack_panels_of_last(source, packing_microkernels<level>(), small_floats<level>, packed);
}

}  // namespace taper::optimized
