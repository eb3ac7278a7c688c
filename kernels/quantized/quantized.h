// Kernels whose weights are integers with scales.
#pragma once
#include "taper/kernels/kernel.h"

namespace taper::quantized {

#define TAPER_KERNEL_NAME(name) extern const Kernel name;
#include "taper/kernels/quantized/kernels.def"
#undef TAPER_KERNEL_NAME

/// All of them, those that need the most CPU features first. Take a record from this set only if
/// the machine has its features: `cpu_features().has(record.needs)`.
extern const KernelSet all;

}  // namespace taper::quantized
