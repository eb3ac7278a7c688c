// std::complex<float> as an element: `Tensor::from(std::vector<std::complex<float>>{…}, {2, 3})`.
#pragma once
#include <complex>

#include "taper/runtime/core/dtype.h"

namespace taper {

/// Both hold the real part, then the imaginary part.
template <>
struct dtypes_of<std::complex<float>> : dtypes_of<Complex64> {};
static_assert(sizeof(std::complex<float>) == sizeof(Complex64));

}  // namespace taper
