#include "taper/kernels/quantized/block_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_ARM64
namespace taper::quantized {
namespace {

// Sums of two products fit into 16 bits.
TAPER_INLINE void add_products(int32x4_t& sum, int8x16_t w, int8x16_t x) {
  const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x)), high = vmull_high_s8(w, x);
  sum = vpadalq_s16(sum, vpaddq_s16(low, high));
}

#include "taper/kernels/quantized/neon_lanes-inl.h"

using Lanes = NeonLanes;

#include "taper/kernels/quantized/block_tiles-inl.h"

}  // namespace

constexpr BlockTiles block_tiles_neon = table;

}  // namespace taper::quantized
#endif
