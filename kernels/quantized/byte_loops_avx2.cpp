#include <type_traits>

#include "taper/kernels/portable/elements.h"
#include "taper/kernels/quantized/byte_loops.h"
#include "taper/kernels/quantized/x86_lanes.h"

#if TAPER_BLOCK_TILES_X86
TAPER_BEGIN_TARGET("avx2,fma,f16c")
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/byte_loops-inl.h"

}  // namespace

constexpr ByteLoops byte_loops_avx2 = loops;

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
