#include "taper/kernels/quantized/block_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avxvnni,avx2,fma,f16c")
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/avx2_lanes-inl.h"

struct Lanes : Avx2Lanes {
  static constexpr bool adds_128 = true;

  template <bool>
  struct Sum {
    static TAPER_INLINE I begin(const int32_t* correction) {
      return correction == nullptr ? _mm256_setzero_si256() : _mm256_set1_epi32(*correction);
    }
    static TAPER_INLINE I add(I sum, B w, B x) { return _mm256_dpbusd_avx_epi32(sum, w, x); }
    static TAPER_INLINE I add_signed(I sum, B w, B x) {
      return add(sum, _mm256_xor_si256(w, _mm256_set1_epi8(static_cast<char>(128))), x);
    }
    static TAPER_INLINE I result(I sum, const int32_t*) { return sum; }
  };
};

#include "taper/kernels/quantized/block_tiles-inl.h"

}  // namespace

constexpr BlockTiles block_tiles_avx_vnni = table;

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
