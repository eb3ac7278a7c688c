// What byte_tiles.h asks for beside tiles, in vectors of AVX2: rounded results, and depthwise
// products. Each source includes this in a namespace of its own: there is no #pragma once. It
// defines widened(bytes): sixteen inputs, with its shift, in 16 bits; and add_pairs(sum, x, w):
// adds sums of two products of 16 bits.

TAPER_INLINE __m256i load(const int32_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// Sums become integers of 8 bits.
struct Rounder {
  __m256 low, high;
  __m256i zero_point;

  TAPER_INLINE explicit Rounder(const Rounding& r)
      : low(_mm256_set1_ps(r.low)),
        high(_mm256_set1_ps(r.high)),
        zero_point(_mm256_set1_epi32(r.zero_point)) {}
  TAPER_INLINE __m256i operator()(__m256i sum, const float* scale) const {
    const __m256 y = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(scale));
    // NaN becomes the second operand
    const __m256 clamped = _mm256_min_ps(_mm256_max_ps(y, low), high);
    return _mm256_add_epi32(_mm256_cvtps_epi32(clamped), zero_point);
  }
};

// Stores `count` of 16 results, whose sums are two vectors.
TAPER_INLINE void store(const Rounder& round, __m256i sum0, __m256i sum1, const float* scale,
                        index_t count, int8_t* to) {
  // packing works within halves: 0-3, 8-11 and 4-7, 12-15
  const __m256i shorts = _mm256_packs_epi32(round(sum0, scale), round(sum1, scale + 8));
  const __m256i ordered = _mm256_permute4x64_epi64(shorts, 0xd8);
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
  if (count >= BytePanels::rows) return _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  int8_t here[BytePanels::rows];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(here), bytes);
  std::memcpy(to, here, static_cast<size_t>(count));
}

// ---- depthwise: 16 channels at a time, and the taps in pairs ----

struct Filters {
  alignas(32) int16_t weight[ByteTiles::most_depthwise_taps / 2][2][16];
};

void arrange(const int8_t* panel, index_t pairs, Filters& f) {
  for (index_t g = 0; g < pairs; ++g)
    for (int i = 0; i < 32; ++i)  // channel i / 2, tap 2 g + i % 2
      f.weight[g][i / 16][i % 16] =
          panel[g / 2 * BytePanels::vector_bytes + i / 2 * 4 + g % 2 * 2 + i % 2];
}

void depthwise(const BytePixels& p, const ByteColumns& c, index_t pixels) {
  const Rounder round(c.rounding);
  Filters f;
  const index_t pairs = (p.taps + 1) / 2;
  for (index_t channel = 0; channel < c.count; channel += BytePanels::rows) {
    arrange(c.weight + channel / BytePanels::rows * c.panel_bytes, pairs, f);
    for (index_t r = 0; r < pixels; ++r) {
      __m256i sum[2] = {load(c.first + channel), load(c.first + channel + 8)};
      for (index_t g = 0; g < pairs; ++g) {
        const index_t second = 2 * g + 1 < p.taps ? 2 * g + 1 : 2 * g;
        const auto bytes = [&](index_t tap) {
          return _mm_loadu_si128(
              reinterpret_cast<const __m128i*>(p.x[tap * p.pitch + r] + channel));
        };
        const __m128i a = bytes(2 * g), b = bytes(second);
        const __m256i low = widened(_mm_unpacklo_epi8(a, b)),
                      high = widened(_mm_unpackhi_epi8(a, b));
        const auto* weight = reinterpret_cast<const __m256i*>(f.weight[g]);
        sum[0] = add_pairs(sum[0], low, _mm256_load_si256(weight));
        sum[1] = add_pairs(sum[1], high, _mm256_load_si256(weight + 1));
      }
      store(round, sum[0], sum[1], c.scale + channel, c.count - channel,
            c.to + r * c.to_pixel + channel);
    }
  }
}
