#include <cstring>

#include "taper/kernels/quantized/byte_loops.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avx2,fma,f16c")
namespace taper::quantized {

// The table is cut into sixteen parts of sixteen bytes, which a shuffle looks up. A shuffle gives 0
// for an index whose highest bit is set. For part i, u - 16 i + 0x70, saturated, has this bit
// unless u lies in the part.
void lookup_avx2(index_t n, const int8_t* x, const int8_t* table, int8_t* y) {
  __m256i part[16];
  for (int i = 0; i < 16; ++i)
    part[i] = _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * i)));
  const __m256i sign = _mm256_set1_epi8(static_cast<char>(0x80)), top = _mm256_set1_epi8(0x70),
                step = _mm256_set1_epi8(16);
  index_t k = 0;
  for (; k + 32 <= n; k += 32) {
    __m256i u = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + k)), sign);
    __m256i found = _mm256_setzero_si256();
    for (int i = 0; i < 16; ++i) {
      found = _mm256_or_si256(found, _mm256_shuffle_epi8(part[i], _mm256_adds_epu8(u, top)));
      u = _mm256_sub_epi8(u, step);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + k), found);
  }
  for (; k < n; ++k) y[k] = table[x[k] + 128];
}

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
