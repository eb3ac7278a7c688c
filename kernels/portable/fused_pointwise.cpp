#include "taper/kernels/portable/fused_pointwise.h"

namespace taper::portable {

TAPER_KERNEL(taper_pointwise, f32, fused::prepare, (fused::run<PlainLoops, math::Separate>))

}  // namespace taper::portable
