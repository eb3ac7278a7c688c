// Weights of static 8-bit products: (panels, vectors, 16, 4) i8, see kernels/operators.def.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/quantized/requantize.h"

namespace taper::quantized {

struct BytePanels {
  static constexpr index_t rows = 16, vector = 4, vector_bytes = rows * vector;

  const int8_t* data;
  index_t vectors;  ///< of a panel

  explicit BytePanels(View<const int8_t> weight) : data(weight.data()), vectors(weight.size(1)) {}
  const int8_t* panel(index_t p) const { return data + p * vectors * vector_bytes; }
  /// How many panels so many output channels need.
  static constexpr index_t panels_of(index_t channels) { return (channels + rows - 1) / rows; }
  /// How many vectors so many input channels and taps need.
  static constexpr index_t vectors_of(index_t depth) { return (depth + vector - 1) / vector; }
};

/// What belongs to the output channels of a product, beside its weights.
struct ByteChannels {
  const float* scales;
  const int32_t *bias, *sums;
  double input_scale, output_scale;
  int32_t zero_point;  ///< of the input

  ByteChannels(View<const float> weight_scales, View<const int32_t> offsets, double from,
               int64_t zero, double to)
      : scales(weight_scales.data()),
        bias(offsets.data()),
        sums(offsets.data() + offsets.size(1)),
        input_scale(from),
        output_scale(to),
        zero_point(static_cast<int32_t>(zero)) {}

  /// At what a sum of weights times (q + shift) begins: the zero point and `shift` are taken off.
  int32_t first(index_t channel, int32_t shift = 0) const {
    return add_product(bias[channel], -(zero_point + shift), sums[channel]);
  }
  float scale(index_t channel) const {
    return product_scale(input_scale, scales[channel], output_scale);
  }
};

/// Adds q times the weights at place `k` of the depth to the sums of the rows of a panel.
inline void add_place(const int8_t* panel, index_t k, int32_t q, int32_t* sums) {
  const int8_t* w = panel + k / BytePanels::vector * BytePanels::vector_bytes + k % 4;
  for (index_t r = 0; r < BytePanels::rows; ++r)
    sums[r] = add_product(sums[r], q, w[r * BytePanels::vector]);
}

}  // namespace taper::quantized
