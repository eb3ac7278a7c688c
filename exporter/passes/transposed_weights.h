// A transposed convolution as a convolution of the same image, whose results lie between each
// other.
#pragma once
#include <array>

#include "taper/exporter/passes/quantized_values.h"

namespace taper::passes {

/// One dimension of a transposed convolution with stride s. Result i belongs to phase (i + padding)
/// mod s. The results of a phase are those of a convolution with stride 1, which reads each s-th
/// element of the kernel.
struct TransposedAxis {
  int64_t stride = 1;                             ///< the number of phases
  int64_t kernel = 1, dilation = 1, padding = 0;  ///< of the convolution of each phase
  int64_t start = 0;  ///< of the result, among the phases' results in turn

  static TransposedAxis of(int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                           int64_t output_padding);
  /// The element of the original kernel that tap `t` of a phase multiplies with; -1: none.
  int64_t element(int64_t phase, int64_t t) const;

  int64_t original_kernel = 1, original_dilation = 1;
};

/// The weights of phases [first, first + count), which are numbered (row, column), for one
/// convolution: (count * out, taps, in / groups). Its channels are (phase, channel); with groups,
/// `count` is 1. `weight` is (in, out / groups, rows, columns), one scale for each of out / groups.
QuantizedWeight weight_of_phases(const QuantizedWeight& weight,
                                 const std::array<TransposedAxis, 2>& axes, int64_t groups,
                                 int64_t first, int64_t count);

}  // namespace taper::passes
