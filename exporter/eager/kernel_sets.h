#pragma once
#include <vector>

#include "taper/kernels/kernel.h"
#include "taper/runtime/platform/cpu.h"

namespace taper::eager {

/// The kernel libraries that this build links, faster ones first. Eager runs these kernels, and
/// exported programs are checked against them.
std::vector<KernelSet> kernel_sets();

/// The same records as one list.
const std::vector<const Kernel*>& all_kernels();

}  // namespace taper::eager
