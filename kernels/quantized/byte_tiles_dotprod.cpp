#include <cstring>
#include <utility>

#include "taper/kernels/quantized/byte_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_ARM64
TAPER_BEGIN_TARGET(TAPER_DOTPROD)
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/unrolled-inl.h"

TAPER_INLINE void add_products(int32x4_t& sum, int8x16_t w, int8x16_t x) {
  TAPER_ADD_DOT_PRODUCTS(sum, w, x);
}

#include "taper/kernels/quantized/neon_bytes-inl.h"

}  // namespace

constexpr ByteTiles byte_tiles_dotprod = {
    0, 5, 1, {{tile<1>, tile<2>, tile<3>, tile<4>, tile<5>, nullptr}, {}, {}, {}}, depthwise};

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
