#include "taper/kernels/quantized/quantized.h"

namespace taper::quantized {
namespace {

constexpr const Kernel* list[] = {
#define TAPER_KERNEL_NAME(name) &name,
#include "taper/kernels/quantized/kernels.def"
#undef TAPER_KERNEL_NAME
};

}  // namespace

constexpr KernelSet all_kernels(list);
const KernelSet all = all_kernels;

}  // namespace taper::quantized
