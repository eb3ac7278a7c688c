// The gradient of a convolution's weight if its groups have few channels, as in depthwise
// convolutions.
#pragma once
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/portable/correlation.h"
#include "taper/runtime/platform/threads.h"

namespace taper::optimized {

/// Whether a group has so few channels that a product over positions (correlation.h) would leave
/// most lanes of its vectors empty.
inline bool has_single_filters(const portable::Correlation& c) {
  return c.groups > 1 && c.inputs * c.outputs <= 2;
}

/// Computes w from x and y, tap by tap. Vectors lie along the rows of an image.
template <CpuLevel level>
void run_filter_gradient(const portable::Correlation& c, const float* x, const float* y,
                         float* weight, const Threads* threads);

}  // namespace taper::optimized
