// The SIMD kernels, once for each CPU level: those on which models spend their time.
#pragma once
#include "taper/kernels/optimized/levels.h"

namespace taper::optimized {

#define TAPER_KERNEL_NAME(name) extern const Kernel name;
#include "taper/kernels/optimized/kernels.def"
#undef TAPER_KERNEL_NAME

/// Every optimized kernel, the highest CPU level first. Take a record from this set only if the
/// machine has its features: `cpu_features().has(record.needs)`.
extern const KernelSet all;

}  // namespace taper::optimized
