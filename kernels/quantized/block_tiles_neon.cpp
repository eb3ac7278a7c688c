#include "taper/kernels/quantized/block_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_ARM64
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/neon_lanes-inl.h"

struct Lanes : NeonLanes {
  template <bool>
  struct Sum {
    static TAPER_INLINE I begin(const int32_t* correction) {
      return vdupq_n_s32(correction == nullptr ? 0 : *correction);
    }
    // Sums of two products fit into 16 bits: no activation is -128.
    static TAPER_INLINE I add_signed(I sum, B w, B x) {
      const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x)), high = vmull_high_s8(w, x);
      return vpadalq_s16(sum, vpaddq_s16(low, high));
    }
    static TAPER_INLINE I add(I sum, B w, B x) { return add_signed(sum, w, x); }  // w is below 64
    static TAPER_INLINE I result(I sum, const int32_t*) { return sum; }
  };
};

#include "taper/kernels/quantized/block_tiles-inl.h"

}  // namespace

constexpr BlockTiles block_tiles_neon = table;

}  // namespace taper::quantized
#endif
