// linear with a weight in blocks: what its kernels have in common.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/quantized/blocks.h"

namespace taper::quantized {

/// input (*, depth), weight (columns, depth), out (*, columns)
struct BlockLinear {
  index_t rows, columns, depth;

  BlockLinear(View<const float> input, View<const float> weight)
      : rows(1), columns(weight.size(0)), depth(weight.size(1)) {
    for (int d = 0; d + 1 < input.rank(); ++d) rows *= input.size(d);
  }
};

/// The weight as a matrix in blocks. Only if its layout is not dense.
inline BlockMatrix blocks_of(View<const float> weight) {
  return {reinterpret_cast<const std::byte*>(weight.data()), weight.layout(), weight.size(0),
          weight.size(1)};
}
/// The bias of column j. A bias of one element is that of all columns.
inline float bias_of(const Maybe<View<const float>>& bias, index_t j) {
  return bias ? bias->data()[bias->numel() == 1 ? 0 : j] : 0.0f;
}

/// block_linear_q8 for any layout, dense too. The scratch is that of the rounded rows.
Error run_plain_q8(Context& context, View<const float> input, View<const float> weight,
                   Maybe<View<const float>> bias, View<float> out);

}  // namespace taper::quantized
