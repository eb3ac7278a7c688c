// One phase of a correlation's result, as products of panels of weights and planes.
#pragma once
#include "taper/kernels/optimized/correlation_layout.h"
#include "taper/kernels/optimized/panels.h"

namespace taper::optimized::correlation {

/// result[r, y, x] = activation(bias[r] + sum over k of weight(r, k) base[offsets[k] + y * pitch +
/// x])
struct Sweep {
  const Panels* panels;
  index_t first_panel, last_panel;  // those to run over: [first, last)
  index_t place;                    // the channel where the weights of the first one lie
  index_t depth;
  index_t tap_rows, tap_columns, row_step;  // as in Channel; backward, `pitch` further up
  const float* weight;                      // panels of (depth, width)
  PackedMatrix packed;  // in place of `weight`, if panels lie along the channels
  const index_t* offsets;
  const float* base;
  index_t planes;  // floats
  index_t pitch, height, width;
  float* result;
  index_t result_channel, result_row, result_column;  // strides
  const float* bias;
  Activation activation;

  const float* weights_of(index_t panel) const {
    if (packed.data != nullptr) return packed.at(panels->first(panel), 0);
    return weight + (panels->first(panel) - panels->first(first_panel) + place) * depth;
  }
};

void run_sweep(const Microkernels& kernels, const ImageTiles& images, const Sweep& s,
               Direction direction);

}  // namespace taper::optimized::correlation
