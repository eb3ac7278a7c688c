// The products of table_rows.h. The including source defines for its instruction set
//
//   Sixteen    f32: a number of each row of weights. It has all, load, from_halves (f16 in 256
//              bits), multiply, multiply_add, add and store
//   Table      sixteen levels. of(index) are those that bytes name
//
// There is no #pragma once: each source includes this in a namespace of its own.

constexpr int width = TableRows::width;

/// A byte of each row of weights.
using Bytes = __m128i;

/// Byte k of each row in to[k], for sixteen bytes of sixteen rows.
TAPER_INLINE void transpose(const Bytes (&rows)[width], Bytes (&to)[16]) {
  Bytes a[width], b[width];
  TAPER_UNROLL
  for (int i = 0; i < width; ++i) a[i] = rows[i];
  // Each step interleaves rows i and i + 8. After four of them a vector holds a byte of all rows.
  TAPER_UNROLL
  for (int step = 0; step < 4; ++step) {
    TAPER_UNROLL
    for (int i = 0; i < 8; ++i) {
      b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
      b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
    }
    TAPER_UNROLL
    for (int i = 0; i < width; ++i) a[i] = b[i];
  }
  TAPER_UNROLL
  for (int i = 0; i < 16; ++i) to[i] = a[i];
}

/// Where the blocks of sixteen rows lie.
struct Rows {
  const std::byte* at[width];

  TAPER_INLINE void bytes(index_t offset, Bytes (&to)[16]) const {
    Bytes from[width];
    TAPER_UNROLL
    for (int i = 0; i < width; ++i)
      from[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at[i] + offset));
    transpose(from, to);
  }
  /// The first eight of to.
  TAPER_INLINE void eight_bytes(index_t offset, Bytes (&to)[16]) const {
    Bytes from[width];
    TAPER_UNROLL
    for (int i = 0; i < width; ++i)
      from[i] = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at[i] + offset));
    transpose(from, to);
  }
};

TAPER_INLINE Bytes bits(Bytes from, int first, int count) {
  return _mm_and_si128(_mm_srli_epi16(from, first),
                       _mm_set1_epi8(static_cast<char>((1 << count) - 1)));
}

/// The floats that bytes hold. With their exponents in the place of those of f16, f16 has the same
/// numbers but for a power of two, subnormal numbers too. `has_nan`: the greatest magnitude is NaN.
template <int count, int places, int bias, bool has_nan = false>
TAPER_INLINE Sixteen small_floats(Bytes from) {
  constexpr int sign = 1 << (count - 1), shift = 10 - places, infinity = 0x7c00;
  const __m256i word = _mm256_cvtepu8_epi16(from);
  const __m256i magnitude =
                    _mm256_slli_epi16(_mm256_and_si256(word, _mm256_set1_epi16(sign - 1)), shift),
                negative =
                    _mm256_slli_epi16(_mm256_and_si256(word, _mm256_set1_epi16(sign)), 16 - count);
  __m256i halves = _mm256_or_si256(magnitude, negative);
  if (has_nan) {
    const __m256i is_nan =
        _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(static_cast<short>((sign - 1) << shift)));
    halves = _mm256_or_si256(halves, _mm256_and_si256(is_nan, _mm256_set1_epi16(infinity)));
  }
  return Sixteen::multiply(Sixteen::from_halves(halves),
                           Sixteen::all(static_cast<float>(1 << (15 - bias))));
}

// How a unit of a format becomes numbers without their scale: `prepare` reads it, and then value<k>
// gives element k of each row. The portable decoder is the definition (blocks.h).

/// Levels of four bits, in sixteen bytes from `offset` + 16 * unit on.
struct Nibbles {
  Table table;
  Bytes bytes[16];

  TAPER_INLINE explicit Nibbles(const float* levels) : table(levels) {}
  template <int k>
  TAPER_INLINE Sixteen value() const {
    return table.of(bits(bytes[k % 16], k / 16 * 4, 4));
  }
};

template <Layout>
struct Format;

template <>
struct Format<Layout::nf4> : Nibbles {
  TAPER_INLINE Format() : Nibbles(nf4_levels) {}
  TAPER_INLINE void prepare(const Rows& rows, index_t unit) { rows.bytes(2 + 16 * unit, bytes); }
  static TAPER_INLINE uint16_t stored_scale(const std::byte* block) {
    return internal::load_at<uint16_t>(block);
  }
  static TAPER_INLINE float scale(uint16_t stored) { return _cvtsh_ss(stored); }
};

constexpr float e2m1_floats[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

template <>
struct Format<Layout::mxfp4> : Nibbles {
  TAPER_INLINE Format() : Nibbles(e2m1_floats) {}
  TAPER_INLINE void prepare(const Rows& rows, index_t) { rows.bytes(1, bytes); }
  static TAPER_INLINE uint32_t stored_scale(const std::byte* block) {
    return internal::byte_at(block, 0);
  }
  static TAPER_INLINE float scale(uint32_t stored) { return internal::half_power(stored); }
};

/// A power of two in the first byte.
struct PowerScale {
  static TAPER_INLINE uint32_t stored_scale(const std::byte* block) {
    return internal::byte_at(block, 0);
  }
  static TAPER_INLINE float scale(uint32_t stored) { return internal::power_of_two(stored); }
};

template <int places, int bias>
struct SixBits : PowerScale {
  Bytes low[16], high[16];

  TAPER_INLINE void prepare(const Rows& rows, index_t) {
    rows.bytes(1, low), rows.eight_bytes(17, high);
  }
  template <int k>
  TAPER_INLINE Sixteen value() const {
    const Bytes four = bits(low[k % 16], k / 16 * 4, 4), two = bits(high[k % 8], k / 8 * 2, 2);
    return small_floats<6, places, bias>(_mm_or_si128(four, _mm_slli_epi16(two, 4)));
  }
};
template <>
struct Format<Layout::mxfp6_e2m3> : SixBits<3, 1> {};
template <>
struct Format<Layout::mxfp6_e3m2> : SixBits<2, 3> {};

template <int places, int bias, bool has_nan>
struct EightBits : PowerScale {
  Bytes bytes[2][16];

  TAPER_INLINE void prepare(const Rows& rows, index_t) {
    rows.bytes(1, bytes[0]), rows.bytes(17, bytes[1]);
  }
  template <int k>
  TAPER_INLINE Sixteen value() const {
    return small_floats<8, places, bias, has_nan>(bytes[k / 16][k % 16]);
  }
};
template <>
struct Format<Layout::mxfp8_e5m2> : EightBits<2, 15, false> {};  // its NaN is that of f16
template <>
struct Format<Layout::mxfp8_e4m3> : EightBits<3, 7, true> {};

template <class Format>
TAPER_INLINE Sixteen scales(const Rows& rows) {
  alignas(64) decltype(Format::stored_scale(nullptr)) stored[width];
  alignas(64) float of[width];
  TAPER_UNROLL
  for (int i = 0; i < width; ++i) stored[i] = Format::stored_scale(rows.at[i]);
  for (int i = 0; i < width; ++i) of[i] = Format::scale(stored[i]);  // in vectors
  return Sixteen::load(of);
}

template <class F, int rows, int... k>
TAPER_INLINE void add_unit(const F& format, const Sixteen& scale, const float* x, index_t x_row,
                           Sixteen (&chain)[rows], std::integer_sequence<int, k...>) {
  const auto add = [&](Sixteen w, const float* here) __attribute__((always_inline)) {
    const Sixteen element = Sixteen::multiply(scale, w);
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r)
      chain[r] = Sixteen::multiply_add(Sixteen::all(here[r * x_row]), element, chain[r]);
  };
  (add(format.template value<k>(), x + k), ...);
}

template <Layout layout, int rows>
void multiply(const BlockMatrix& w, const index_t* of_w, const float* x, index_t x_row, float* to) {
  constexpr BlockSize block = block_of(layout);
  constexpr index_t units = block.elements / unit_elements, units_of_chain = 256 / unit_elements;
  const index_t bytes = w.depth / block.elements * block.bytes;
  Rows at;
  for (int i = 0; i < width; ++i) at.at[i] = w.data + of_w[i] * bytes;
  // The next sixteen rows follow. They are prefetched meanwhile: sixteen short streams are too many
  // for the processor's own prefetch.
  const std::byte* soon = at.at[width - 1] + bytes;
  constexpr index_t line = 64, bytes_of_unit = width * block.bytes / units;
  Format<layout> format;
  Sixteen chain[rows], sum[rows];
  for (int r = 0; r < rows; ++r)
    chain[r] = Sixteen::all(0), sum[r] = Sixteen::all(-0.0f);  // to which nothing is added
  for (index_t u = 0; u < w.units(); ++u, x += unit_elements, soon += bytes_of_unit) {
    for (index_t i = 0; i < bytes_of_unit; i += line) __builtin_prefetch(soon + i);
    format.prepare(at, u % units);
    add_unit(format, scales<Format<layout>>(at), x, x_row, chain,
             std::make_integer_sequence<int, unit_elements>());
    if ((u + 1) % units == 0)
      for (const std::byte*& here : at.at) here += block.bytes;
    if ((u + 1) % units_of_chain != 0 && u + 1 != w.units()) continue;
    for (int r = 0; r < rows; ++r)
      sum[r] = Sixteen::add(sum[r], chain[r]), chain[r] = Sixteen::all(0);
  }
  for (int r = 0; r < rows; ++r) Sixteen::store(sum[r], to + r * width);
}

template <Layout layout>
void multiply_any(const BlockMatrix& w, const index_t* of_w, const float* x, index_t x_row,
                  index_t rows, float* to) {
  switch (rows) {
    case 1:
      return multiply<layout, 1>(w, of_w, x, x_row, to);
    case 2:
      return multiply<layout, 2>(w, of_w, x, x_row, to);
    case 3:
      return multiply<layout, 3>(w, of_w, x, x_row, to);
    default:
      return multiply<layout, 4>(w, of_w, x, x_row, to);
  }
}

void multiply_table_rows(const BlockMatrix& w, index_t first, const float* x, index_t x_row,
                         index_t rows, float* to) {
  index_t of_w[width];
  for (int i = 0; i < width; ++i) of_w[i] = first + i < w.rows ? first + i : w.rows - 1;
  switch (w.layout) {
    case Layout::nf4:
      return multiply_any<Layout::nf4>(w, of_w, x, x_row, rows, to);
    case Layout::mxfp4:
      return multiply_any<Layout::mxfp4>(w, of_w, x, x_row, rows, to);
    case Layout::mxfp6_e2m3:
      return multiply_any<Layout::mxfp6_e2m3>(w, of_w, x, x_row, rows, to);
    case Layout::mxfp6_e3m2:
      return multiply_any<Layout::mxfp6_e3m2>(w, of_w, x, x_row, rows, to);
    case Layout::mxfp8_e4m3:
      return multiply_any<Layout::mxfp8_e4m3>(w, of_w, x, x_row, rows, to);
    default:
      return multiply_any<Layout::mxfp8_e5m2>(w, of_w, x, x_row, rows, to);
  }
}
