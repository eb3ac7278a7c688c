// What several derivatives share.
#pragma once
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {

/// An argument of which the kernel reads the sizes alone: one zero, expanded.
inline Tensor stand_in_of(const Dims& sizes, DType dtype) { return zeros({}, dtype).expand(sizes); }

/// dy times a number that is one most of the time.
inline Tensor scaled(const Tensor& dy, Scalar factor) {
  return factor.to<double>() == 1 ? dy : dy * factor;
}

}  // namespace taper::eager::derivatives
