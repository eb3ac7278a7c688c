#include "taper/kernels/optimized/packing.h"

#include <cstring>

#include "taper/kernels/optimized/tasks.h"

namespace taper::optimized {

void widen_row(const Operand& operand, index_t i, index_t k, index_t count, float* to) {
  const Operand& o = operand;
  if (o.depth_stride == 1) return o.small->widen(o.dtype, count, o.at(i, k), to);
  for (index_t j = 0; j < count; ++j) o.small->widen(o.dtype, 1, o.at(i, k + j), to + j);
}

void pack(const Microkernels& kernels, const Operand& operand, index_t i, index_t depth_first,
          index_t across, index_t depth, float* to, index_t to_row, float* piece) {
  const Operand& o = operand;
  if (!o.is_small())
    return kernels.pack(o.floats(i, depth_first), o.across_stride, o.depth_stride, across, depth,
                        to, to_row);
  if (o.across_stride == 1) {
    for (index_t k = 0; k < depth; ++k)
      o.small->widen(o.dtype, across, o.at(i, depth_first + k), to + k * to_row);
    return;
  }
  const index_t most = piece_floats / across;
  for (index_t k = 0; k < depth; k += most) {
    const index_t length = smaller(most, depth - k);
    for (index_t j = 0; j < across; ++j)
      widen_row(o, i + j, depth_first + k, length, piece + j * length);
    kernels.pack(piece, length, 1, across, length, to + k * to_row, to_row);
  }
}

void pack_pairs(const Microkernels& kernels, const PairTiles& tiles, const Operand& operand,
                index_t i, index_t depth_first, index_t across, index_t depth, Pair* to,
                index_t to_row, float* piece) {
  const Operand& o = operand;
  const auto at = [&](index_t j, index_t k) {
    return static_cast<const BFloat16*>(o.at(i + j, depth_first + k));
  };
  if (o.is_small() && o.across_stride == 1) {
    const BFloat16 zeros[most_across] = {};
    for (index_t k = 0; k < depth; k += 2)
      tiles.interleave(across, at(0, k), k + 1 < depth ? at(0, k + 1) : zeros, to + k / 2 * to_row);
    return;
  }
  // packs rows of pairs, and transposes them like rows of floats
  const index_t most = piece_floats / across;
  for (index_t k = 0; k < depth; k += 2 * most) {
    const index_t length = smaller(2 * most, depth - k), pairs = ceil_div(length, 2);
    for (index_t j = 0; j < across; ++j) {
      BFloat16* row = reinterpret_cast<BFloat16*>(piece + j * pairs);
      if (length % 2 != 0) row[length] = BFloat16(0.0f);
      if (!o.is_small())
        o.small->narrow(DType::bf16, length, o.floats(i + j, depth_first + k), row);
      else if (o.depth_stride == 1)
        std::memcpy(row, at(j, k), static_cast<size_t>(length) * sizeof(BFloat16));
      else
        for (index_t n = 0; n < length; ++n) row[n] = *at(j, k + n);
    }
    kernels.pack(piece, pairs, 1, across, pairs, reinterpret_cast<float*>(to + k / 2 * to_row),
                 to_row);
  }
}

}  // namespace taper::optimized
