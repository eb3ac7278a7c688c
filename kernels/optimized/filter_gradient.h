// The gradient of the weight of a convolution whose groups have few channels, as depthwise ones do.
#pragma once
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/portable/correlation.h"
#include "taper/runtime/platform/threads.h"

namespace taper::optimized {

/// So few channels in a group that a product over positions (correlation.h) would leave most lanes
/// of its vectors empty.
inline bool has_single_filters(const portable::Correlation& c) {
  return c.groups > 1 && c.inputs * c.outputs <= 2;
}

/// w from x and y, tap by tap: vectors lie along the rows of an image.
template <CpuLevel level>
void run_filter_gradient(const portable::Correlation& c, const float* x, const float* y,
                         float* weight, const Threads* threads);

}  // namespace taper::optimized
