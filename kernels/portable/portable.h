// The portable kernels: plain C++ that runs anywhere, the reference of every faster one.
#pragma once
#include "taper/kernels/kernel.h"

namespace taper::portable {

#define TAPER_KERNEL_NAME(name) extern const Kernel name;
#include "taper/kernels/portable/kernels.def"
#undef TAPER_KERNEL_NAME

/// Every portable kernel. A program that links this links them all; a firmware names those it needs
/// instead.
extern const KernelSet all;

}  // namespace taper::portable
