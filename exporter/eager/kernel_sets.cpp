#include "taper/exporter/eager/kernel_sets.h"

#ifdef TAPER_HAS_OPTIMIZED
#include "taper/kernels/optimized/optimized.h"
#endif
#include "taper/kernels/portable/portable.h"

namespace taper::eager {

std::vector<KernelSet> kernel_sets() {
  return {
#ifdef TAPER_HAS_OPTIMIZED
      optimized::all,
#endif
      portable::all,
  };
}

const std::vector<const Kernel*>& all_kernels() {
  static const std::vector<const Kernel*> list = [] {
    std::vector<const Kernel*> kernels;
    for (const KernelSet& set : kernel_sets())
      kernels.insert(kernels.end(), set.begin(), set.end());
    return kernels;
  }();
  return list;
}

}  // namespace taper::eager
