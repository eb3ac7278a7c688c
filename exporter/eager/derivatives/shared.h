// Functions that several derivatives share.
#pragma once
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {

/// An argument for a kernel that reads only its sizes: one zero, expanded.
inline Tensor stand_in_of(const Dims& sizes, DType dtype) { return zeros({}, dtype).expand(sizes); }

/// dy times a number, which is usually 1.
inline Tensor scaled(const Tensor& dy, Scalar factor) {
  return factor.to<double>() == 1 ? dy : dy * factor;
}

}  // namespace taper::eager::derivatives
