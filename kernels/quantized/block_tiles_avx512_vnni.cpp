#include "taper/kernels/quantized/block_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avx512vnni,avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/avx512_lanes-inl.h"

struct Lanes : Avx512Lanes {
  static constexpr bool adds_128 = true;

  template <bool>
  struct Sum {
    static TAPER_INLINE I begin(const int32_t* correction) {
      return correction == nullptr ? _mm512_setzero_si512() : _mm512_set1_epi32(*correction);
    }
    static TAPER_INLINE I add(I sum, B w, B x) { return _mm512_dpbusd_epi32(sum, w, x); }
    static TAPER_INLINE I add_signed(I sum, B w, B x) {
      return add(sum, _mm512_xor_si512(w, _mm512_set1_epi8(static_cast<char>(128))), x);
    }
    static TAPER_INLINE I result(I sum, const int32_t*) { return sum; }
  };
};

#include "taper/kernels/quantized/block_tiles-inl.h"

}  // namespace

constexpr BlockTiles block_tiles_avx512_vnni = table;

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
