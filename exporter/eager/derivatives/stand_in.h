#pragma once
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/view.h"

namespace taper::eager::derivatives {

/// An argument of which the kernel reads the sizes alone: one zero, expanded.
inline Tensor stand_in_of(const Dims& sizes, DType dtype, Location here) {
  return zeros({}, dtype, here).expand(sizes, here);
}

}  // namespace taper::eager::derivatives
