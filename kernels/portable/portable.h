// The portable kernels: plain C++ that runs anywhere. Every faster kernel is compared with them.
#pragma once
#include "taper/kernels/kernel.h"

namespace taper::portable {

#define TAPER_KERNEL_NAME(name) extern const Kernel name;
#include "taper/kernels/portable/kernels.def"
#undef TAPER_KERNEL_NAME

/// Every portable kernel. A program that links this set links them all. A firmware names only the
/// kernels that it needs.
extern const KernelSet all;

}  // namespace taper::portable
