// The tiles of byte_tiles.h in vectors of NEON. Each source includes this in a namespace of its
// own: there is no #pragma once. It defines add_products(sum, w, x), which adds the products of
// four neighbouring bytes to each sum.

// Sums become integers of 8 bits.
struct Rounder {
  float32x4_t low, high;
  int32x4_t zero_point;

  TAPER_INLINE explicit Rounder(const Rounding& r)
      : low(vdupq_n_f32(r.low)), high(vdupq_n_f32(r.high)), zero_point(vdupq_n_s32(r.zero_point)) {}
  TAPER_INLINE int16x4_t operator()(int32x4_t sum, const float* scale) const {
    const float32x4_t y = vmulq_f32(vcvtq_f32_s32(sum), vld1q_f32(scale));
    const float32x4_t clamped = vminnmq_f32(vmaxnmq_f32(y, low), high);  // NaN becomes the other
    return vqmovn_s32(vaddq_s32(vcvtnq_s32_f32(clamped), zero_point));
  }
};

// Stores `count` of 16 results.
TAPER_INLINE void store(const Rounder& round, const int32x4_t* sum, const float* scale,
                        index_t count, int8_t* to) {
  const int16x8_t low = vcombine_s16(round(sum[0], scale), round(sum[1], scale + 4)),
                  high = vcombine_s16(round(sum[2], scale + 8), round(sum[3], scale + 12));
  const int8x16_t bytes = vcombine_s8(vqmovn_s16(low), vqmovn_s16(high));
  if (count >= BytePanels::rows) return vst1q_s8(to, bytes);
  int8_t here[BytePanels::rows];
  vst1q_s8(here, bytes);
  std::memcpy(to, here, static_cast<size_t>(count));
}

// One panel: four vectors of four rows.
template <int pixels>
void tile(const BytePixels& p, const ByteColumns& c) {
  int32x4_t sum[pixels][4];
  unrolled<4>(TAPER_EACH(v) {
    const int32x4_t first = vld1q_s32(c.first + 4 * v);
    unrolled<pixels>(TAPER_EACH(r) { sum[r][v] = first; });
  });
  const int8_t* w = c.weight;
  for (index_t t = 0; t < p.taps; ++t) {
    const int8_t* x[pixels];
    unrolled<pixels>(TAPER_EACH(r) { x[r] = p.x[t * p.pitch + r]; });
    for (index_t k = 0; k < p.vectors_of_tap; ++k, w += BytePanels::vector_bytes) {
      int8x16_t weight[4];
      unrolled<4>(TAPER_EACH(v) { weight[v] = vld1q_s8(w + 16 * v); });
      unrolled<pixels>(TAPER_EACH(r) {
        int32_t bits;
        std::memcpy(&bits, x[r] + BytePanels::vector * k, sizeof bits);
        const int8x16_t four = vreinterpretq_s8_s32(vdupq_n_s32(bits));
        unrolled<4>(TAPER_EACH(v) { add_products(sum[r][v], weight[v], four); });
      });
    }
  }
  const Rounder round(c.rounding);
  unrolled<pixels>(
      TAPER_EACH(r) { store(round, sum[r], c.scale, c.count, c.to + r * c.to_pixel); });
}

// Depthwise: 16 channels at a time, tap by tap.
void depthwise(const BytePixels& p, const ByteColumns& c, index_t pixels) {
  const Rounder round(c.rounding);
  int8_t weight[ByteTiles::most_depthwise_taps][BytePanels::rows];
  for (index_t channel = 0; channel < c.count; channel += BytePanels::rows) {
    const int8_t* panel = c.weight + channel / BytePanels::rows * c.panel_bytes;
    for (index_t t = 0; t < p.taps; ++t)
      for (index_t i = 0; i < BytePanels::rows; ++i)
        weight[t][i] = panel[t / BytePanels::vector * BytePanels::vector_bytes +
                             i * BytePanels::vector + t % BytePanels::vector];
    for (index_t r = 0; r < pixels; ++r) {
      int32x4_t sum[4];
      unrolled<4>(TAPER_EACH(v) { sum[v] = vld1q_s32(c.first + channel + 4 * v); });
      for (index_t t = 0; t < p.taps; ++t) {
        const int8x16_t x = vld1q_s8(p.x[t * p.pitch + r] + channel), w = vld1q_s8(weight[t]);
        const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(w)), high = vmull_high_s8(x, w);
        sum[0] = vaddw_s16(sum[0], vget_low_s16(low)), sum[1] = vaddw_high_s16(sum[1], low);
        sum[2] = vaddw_s16(sum[2], vget_low_s16(high)), sum[3] = vaddw_high_s16(sum[3], high);
      }
      store(round, sum, c.scale + channel, c.count - channel, c.to + r * c.to_pixel + channel);
    }
  }
}
