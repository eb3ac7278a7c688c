#include "taper/kernels/quantized/block_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_ARM64
TAPER_BEGIN_TARGET(TAPER_DOTPROD)
namespace taper::quantized {
namespace {

TAPER_INLINE void add_products(int32x4_t& sum, int8x16_t w, int8x16_t x) {
  TAPER_ADD_DOT_PRODUCTS(sum, w, x);
}

#include "taper/kernels/quantized/neon_lanes-inl.h"

using Lanes = NeonLanes;

#include "taper/kernels/quantized/block_tiles-inl.h"

}  // namespace

constexpr BlockTiles block_tiles_dotprod = table;

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
