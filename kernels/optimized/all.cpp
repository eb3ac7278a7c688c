#include "taper/kernels/optimized/optimized.h"

namespace taper::optimized {
namespace {

constexpr const Kernel* list[] = {
#define TAPER_KERNEL_NAME(name) &name,
#include "taper/kernels/optimized/kernels.def"
#undef TAPER_KERNEL_NAME
};

}  // namespace

constexpr KernelSet all_kernels(list);
const KernelSet all = all_kernels;

}  // namespace taper::optimized
