#include "taper/kernels/quantized/block_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avx2,fma,f16c")
namespace taper::quantized {
namespace {

#include "taper/kernels/quantized/avx2_lanes-inl.h"

struct Lanes : Avx2Lanes {
  static constexpr bool adds_128 = false;

  static TAPER_INLINE I of_pairs(I pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }

  template <bool small>
  struct Sum {
    static TAPER_INLINE I begin(const int32_t*) { return _mm256_setzero_si256(); }
    // Pairs of small products stay below 2^15 for a whole unit: 16 * 15 * 127. Others become i32.
    static TAPER_INLINE I add_pairs(I sum, I pairs) {
      sum = small ? _mm256_add_epi16(sum, pairs) : _mm256_add_epi32(sum, of_pairs(pairs));
      __asm__("" : "+x"(sum));  // compilers that know what is added do so late, out of registers
      return sum;
    }
    static TAPER_INLINE I add(I sum, B w, B x) {
      return add_pairs(sum, _mm256_maddubs_epi16(w, x));
    }
    static TAPER_INLINE I add_signed(I sum, B w, B x) {
      return add_pairs(sum, _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)));
    }
    static TAPER_INLINE I result(I sum, const int32_t* correction) {
      const I products = small ? of_pairs(sum) : sum;
      return correction == nullptr ? products
                                   : _mm256_add_epi32(products, _mm256_set1_epi32(*correction));
    }
  };
};

#include "taper/kernels/quantized/block_tiles-inl.h"

}  // namespace

constexpr BlockTiles block_tiles_avx2 = table;

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
