#include <cstring>
#include <utility>

#include "taper/kernels/quantized/byte_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_ARM64
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/unrolled-inl.h"

// Two products of -128 do not fit into 16 bits together.
TAPER_INLINE void add_products(int32x4_t& sum, int8x16_t w, int8x16_t x) {
  const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x)), high = vmull_high_s8(w, x);
  sum = vaddq_s32(sum, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)));
}

#include "taper/kernels/quantized/neon_bytes-inl.h"

}  // namespace

constexpr ByteTiles byte_tiles_neon = {
    0, 4, 1, {{tile<1>, tile<2>, tile<3>, tile<4>, nullptr, nullptr}, {}, {}, {}}, depthwise};

}  // namespace taper::quantized
#endif
