// Products of pairs of rows for tiles of NEON: the instruction multiplies two rows of eight bytes
// with two others. Each source includes this in a namespace of its own: there is no #pragma once.

// Four rows of a panel at eight neighbouring places, in pairs: rows 0 and 1, rows 2 and 3.
struct RowPairs {
  int8x16_t pair[2];

  /// Each has four neighbours of the four rows.
  TAPER_INLINE RowPairs(int8x16_t first, int8x16_t second) {
    const int32x4_t a = vreinterpretq_s32_s8(first), b = vreinterpretq_s32_s8(second);
    pair[0] = vreinterpretq_s8_s32(vzip1q_s32(a, b));
    pair[1] = vreinterpretq_s8_s32(vzip2q_s32(a, b));
  }
};

/// Eight bytes of two rows of x.
TAPER_INLINE int8x16_t eight_of(const int8_t* x, const int8_t* other) {
  return vcombine_s8(vld1_s8(x), vld1_s8(other));
}

// Sums of two rows of x with four rows of a panel.
struct PairSums {
  int32x4_t pair[2];  ///< x with w, x with w', x' with w, x' with w'

  /// At what the sums of each row of x begin, for the four rows of the panel.
  TAPER_INLINE void begin(int32x4_t x, int32x4_t other) {
    pair[0] = vcombine_s32(vget_low_s32(x), vget_low_s32(other));
    pair[1] = vcombine_s32(vget_high_s32(x), vget_high_s32(other));
  }
  TAPER_INLINE void add(const RowPairs& w, int8x16_t x) {
    TAPER_ADD_MATRIX_PRODUCTS(pair[0], x, w.pair[0]);
    TAPER_ADD_MATRIX_PRODUCTS(pair[1], x, w.pair[1]);
  }
  /// The sums of the first row of x, or of the other one.
  TAPER_INLINE int32x4_t of_first() const {
    return vcombine_s32(vget_low_s32(pair[0]), vget_low_s32(pair[1]));
  }
  TAPER_INLINE int32x4_t of_other() const {
    return vcombine_s32(vget_high_s32(pair[0]), vget_high_s32(pair[1]));
  }
};
