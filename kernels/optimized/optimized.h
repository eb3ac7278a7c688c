// The SIMD kernels: what a model spends its time in, once per CPU level.
#pragma once
#include "taper/kernels/optimized/levels.h"

namespace taper::optimized {

#define TAPER_KERNEL_NAME(name) extern const Kernel name;
#include "taper/kernels/optimized/kernels.def"
#undef TAPER_KERNEL_NAME

/// Every optimized kernel, the fastest level first: whoever takes records from this set asks
/// `cpu_has(record.level)`.
extern const KernelSet all;

}  // namespace taper::optimized
