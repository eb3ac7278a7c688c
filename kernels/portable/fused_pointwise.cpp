#include "taper/kernels/portable/fused_pointwise.h"

namespace taper::portable {

TAPER_KERNEL(taper_pointwise, f32, fused::prepare, (fused::run<PlainLoops, math::Separate>))

const fused::RunProgram fused::run_portable_program =
    fused::run_program<PlainLoops, math::Separate>;
const fused::RunProgram fused::run_portable_plain_program =
    fused::run_program<PlainLoops, fused::PlainProgram>;

}  // namespace taper::portable
