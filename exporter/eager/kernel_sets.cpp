#include "taper/exporter/eager/kernel_sets.h"

#ifdef TAPER_HAS_OPTIMIZED
#include "taper/kernels/optimized/optimized.h"
#endif
#include "taper/kernels/portable/portable.h"
#include "taper/kernels/quantized/quantized.h"
#include "taper/runtime/platform/cpu_request.h"

namespace taper::eager {

std::vector<NamedKernelSet> kernel_sets() {
  return {
#ifdef TAPER_HAS_OPTIMIZED
      {"optimized", optimized::all},
#endif
      {"quantized", quantized::all},
      {"portable", portable::all},
  };
}

CpuFeatures cpu() {
  static const CpuFeatures features = request_cpu_features();
  return features;
}

const std::vector<const Kernel*>& all_kernels() {
  static const std::vector<const Kernel*> list = [] {
    std::vector<const Kernel*> kernels;
    for (const NamedKernelSet& set : kernel_sets())
      kernels.insert(kernels.end(), set.kernels.begin(), set.kernels.end());
    return kernels;
  }();
  return list;
}

}  // namespace taper::eager
