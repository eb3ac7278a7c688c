#include "taper/kernels/portable/portable.h"

namespace taper::portable {
namespace {

constexpr const Kernel* list[] = {
#define TAPER_KERNEL_NAME(name) &name,
#include "taper/kernels/portable/kernels.def"
#undef TAPER_KERNEL_NAME
};

}  // namespace

constexpr KernelSet all_kernels(list);
const KernelSet all = all_kernels;

}  // namespace taper::portable
