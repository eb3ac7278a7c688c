// Names all kernels. Alone in its file, so that an app with a table of its own does not link them.
#include <vector>

#include "taper/kernels/portable/portable.h"
#include "taper/runtime/extension/module/module.h"
#ifdef TAPER_HAS_OPTIMIZED_KERNELS
#include "taper/kernels/optimized/optimized.h"
#endif

namespace taper {

KernelSet default_kernels() {
#ifdef TAPER_HAS_OPTIMIZED_KERNELS
  static const std::vector<const Kernel*> all = [] {
    std::vector<const Kernel*> kernels(optimized::all.begin(), optimized::all.end());
    kernels.insert(kernels.end(), portable::all.begin(), portable::all.end());
    return kernels;
  }();
  return all;
#else
  return portable::all;
#endif
}

}  // namespace taper
