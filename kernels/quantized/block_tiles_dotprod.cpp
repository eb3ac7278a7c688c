#include "taper/kernels/quantized/block_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_ARM64
TAPER_BEGIN_TARGET(TAPER_DOTPROD)
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/neon_lanes-inl.h"

struct Lanes : NeonLanes {
  template <bool>
  struct Sum {
    static TAPER_INLINE I begin(const int32_t* correction) {
      return vdupq_n_s32(correction == nullptr ? 0 : *correction);
    }
    static TAPER_INLINE I add_signed(I sum, B w, B x) {
      TAPER_ADD_DOT_PRODUCTS(sum, w, x);
      return sum;
    }
    static TAPER_INLINE I add(I sum, B w, B x) { return add_signed(sum, w, x); }  // w is below 64
    static TAPER_INLINE I result(I sum, const int32_t*) { return sum; }
  };
};

#include "taper/kernels/quantized/block_tiles-inl.h"

}  // namespace

constexpr BlockTiles block_tiles_dotprod = table;

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
