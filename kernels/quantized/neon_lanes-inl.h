// Vectors of NEON for block_tiles-inl.h. Each source includes this in a namespace of its own: there
// is no #pragma once. It defines add_products(sum, w, x), which adds the products of four
// neighbouring bytes to each sum. No x is -128.
struct NeonLanes {
  static constexpr int lanes = 4, sums = 24, most_vectors = 4, most_rows = 8;
  static constexpr bool overlaps = false;
  static constexpr bool adds_128 = false;
  static constexpr auto round = round_units;
  using F = float32x4_t;
  using I = int32x4_t;
  using B = int8x16_t;

  static TAPER_INLINE F all(float x) { return vdupq_n_f32(x); }
  static TAPER_INLINE F floats(const float* from) { return vld1q_f32(from); }
  static TAPER_INLINE F multiply(F a, F b) { return vmulq_f32(a, b); }
  static TAPER_INLINE F multiply_add(F a, F b, F c) { return vfmaq_f32(c, a, b); }
  static TAPER_INLINE F negative(F a) { return vnegq_f32(a); }
  static TAPER_INLINE F to_float(I i) { return vcvtq_f32_s32(i); }
  static TAPER_INLINE void store(F a, float* to) { vst1q_f32(to, a); }

  static TAPER_INLINE B load(const std::byte* from) {
    return vld1q_s8(reinterpret_cast<const int8_t*>(from));
  }
  static TAPER_INLINE F from_halves(const std::byte* from) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(from))));
  }
  static TAPER_INLINE F from_bytes(const std::byte* from) {
    const uint8x8_t bytes = vreinterpret_u8_s8(four_bytes(from));
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(bytes))));
  }
  static TAPER_INLINE F from_signed_bytes(const std::byte* from) {
    return to_float(vmovl_s16(vget_low_s16(vmovl_s8(four_bytes(from)))));
  }
  template <int i>
  static TAPER_INLINE F signed_byte(B b) {
    return to_float(vshrq_n_s32(vshlq_n_s32(vreinterpretq_s32_s8(b), 24 - 8 * i), 24));
  }

  static TAPER_INLINE B lower(B both) { return vandq_s8(both, vdupq_n_s8(15)); }
  static TAPER_INLINE B upper(B both) {
    return vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(both), 4));
  }
  /// Adds the two bits of `high` from `shift` on as bits 4 and 5.
  template <int shift>
  static TAPER_INLINE B with_high_bits(B low, B high) {
    const uint8x16_t bits = vandq_u8(vreinterpretq_u8_s8(high), vdupq_n_u8(3 << shift));
    if constexpr (shift <= 4)
      return vorrq_s8(low, vreinterpretq_s8_u8(vshlq_n_u8(bits, 4 - shift)));
    else
      return vorrq_s8(low, vreinterpretq_s8_u8(vshrq_n_u8(bits, shift - 4)));
  }
  static TAPER_INLINE B four(const int8_t* x) {
    int32_t bits;
    std::memcpy(&bits, x, sizeof bits);
    return vreinterpretq_s8_s32(vdupq_n_s32(bits));
  }

  template <bool>
  struct Sum {
    static TAPER_INLINE I begin(const int32_t* correction) {
      return vdupq_n_s32(correction == nullptr ? 0 : *correction);
    }
    static TAPER_INLINE I add_signed(I sum, B w, B x) {
      add_products(sum, w, x);
      return sum;
    }
    static TAPER_INLINE I add(I sum, B w, B x) { return add_signed(sum, w, x); }  // w is below 64
    static TAPER_INLINE I result(I sum, const int32_t*) { return sum; }
  };

 private:
  static TAPER_INLINE int8x8_t four_bytes(const std::byte* from) {
    int32_t bits;
    std::memcpy(&bits, from, sizeof bits);
    return vreinterpret_s8_s32(vdup_n_s32(bits));
  }
};
