// The operands of a matrix product, and how they are copied into the panels that tiles read.
#pragma once
#include "taper/kernels/optimized/pair_tiles.h"
#include "taper/kernels/portable/pointwise.h"

namespace taper::optimized {

/// A strided matrix (depth, across): the rows of a, or the columns of b, each along k. f16 and bf16
/// are widened to f32 when they are packed.
struct Operand {
  const void* data;
  index_t across_stride, depth_stride;
  DType dtype;
  const portable::SmallFloats* small;

  bool is_small() const { return dtype != DType::f32; }
  index_t element_bytes() const { return is_small() ? 2 : 4; }
  const void* at_offset(index_t elements) const {
    return static_cast<const std::byte*>(data) + elements * element_bytes();
  }
  const void* at(index_t i, index_t k) const {
    return at_offset(i * across_stride + k * depth_stride);
  }
  /// For an operand that holds f32.
  const float* floats(index_t i, index_t k) const {
    return static_cast<const float*>(data) + i * across_stride + k * depth_stride;
  }
  /// Prefetches `count` consecutive elements.
  void prefetch(index_t i, index_t k, index_t count) const {
    constexpr index_t line = 64;
    const char* from = static_cast<const char*>(at(i, k));
    for (index_t byte = 0; byte < count * element_bytes(); byte += line)
      __builtin_prefetch(from + byte, 0, 2);
  }
};

/// The dtype of the elements of a tensor that has strides, as they are stored.
inline DType stored_dtype(const TensorRef& t) {
  if (!is_in_halves(t.layout)) return t.dtype;
  return is_in_f16(t.layout) ? DType::f16 : DType::bf16;
}

/// Widens `count` elements of row i of a small operand, from k on.
void widen_row(const Operand& operand, index_t i, index_t k, index_t count, float* to);

/// The floats of scratch that small floats pass through, and the most rows or columns that are
/// packed at once.
inline constexpr index_t piece_floats = 4096, most_across = 32;
static_assert(most_across >= Microkernels::most_vectors * Microkernels::most_lanes);

/// Copies a part of an operand: to[k * to_row + j] = operand(i + j, depth_first + k) for j in [0,
/// across), k in [0, depth). `across` is at most most_across. `piece` is scratch for small floats.
void pack(const Microkernels& kernels, const Operand& operand, index_t i, index_t depth_first,
          index_t across, index_t depth, float* to, index_t to_row, float* piece);

/// The same for bf16, in pairs along k: to[p * to_row + j] holds element depth_first + 2 p and the
/// next one. f32 is rounded to bf16; it must be dense along k.
void pack_pairs(const Microkernels& kernels, const PairTiles& tiles, const Operand& operand,
                index_t i, index_t depth_first, index_t across, index_t depth, Pair* to,
                index_t to_row, float* piece);

}  // namespace taper::optimized
