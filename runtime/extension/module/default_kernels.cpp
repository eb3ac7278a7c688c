// Names all kernels. Alone in its file, so that an app with a table of its own does not link them.
#include <vector>

#include "taper/kernels/portable/portable.h"
#include "taper/kernels/quantized/quantized.h"
#include "taper/runtime/extension/module/module.h"
#ifdef TAPER_HAS_OPTIMIZED_KERNELS
#include "taper/kernels/optimized/optimized.h"
#endif

namespace taper {

KernelSet default_kernels() {
  static const std::vector<const Kernel*> all = [] {
    std::vector<const Kernel*> kernels;
    for (const KernelSet& set : {
#ifdef TAPER_HAS_OPTIMIZED_KERNELS
             optimized::all,
#endif
             quantized::all, portable::all})
      kernels.insert(kernels.end(), set.begin(), set.end());
    return kernels;
  }();
  return all;
}

}  // namespace taper
