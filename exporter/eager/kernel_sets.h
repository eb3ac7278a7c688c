#pragma once
#include <vector>

#include "taper/kernels/kernel.h"
#include "taper/runtime/platform/cpu.h"

namespace taper::eager {

struct NamedKernelSet {
  const char* name;  ///< "portable"
  KernelSet kernels;
};
/// The kernel libraries that this build links, the faster ones first. Eager runs these kernels.
std::vector<NamedKernelSet> kernel_sets();

/// The same records as one list.
const std::vector<const Kernel*>& all_kernels();

/// The features of this machine's processor. It is asked once.
CpuFeatures cpu();

}  // namespace taper::eager
