#include "taper/kernels/quantized/block_rows.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_X86
TAPER_BEGIN_TARGET("avx2,fma,f16c")
namespace taper::quantized {
namespace {

constexpr int width = BlockRows::width;

/// A unit of each row of weights.
struct alignas(32) Units {
  int8_t values[width][unit_elements];
  float scales[2][width], offsets[2][width];  ///< of the halves
};

TAPER_INLINE __m128i sixteen(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
TAPER_INLINE float half_at(const std::byte* from) {
  return _cvtsh_ss(internal::load_at<uint16_t>(from));
}
/// The lower halves of sixteen bytes, and then the upper ones.
TAPER_INLINE __m256i nibbles(const std::byte* from) {
  const __m128i both = sixteen(from);
  return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(both, 4), both), _mm256_set1_epi8(15));
}
/// The levels that nibbles name.
TAPER_INLINE __m256i lookup(const int8_t (&levels)[16], const std::byte* from) {
  const __m128i table = sixteen(reinterpret_cast<const std::byte*>(levels));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), nibbles(from));
}
TAPER_INLINE __m256i bytes_at(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
/// `count` bits of each of 32 bytes, from bit `first` on.
TAPER_INLINE __m256i bits_at(const std::byte* from, index_t first, int count) {
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(first));
  return _mm256_and_si256(_mm256_srl_epi16(bytes_at(from), shift),
                          _mm256_set1_epi8(static_cast<char>((1 << count) - 1)));
}
/// A byte for each of 32 bytes: all ones where bit `place` is set, or zero.
TAPER_INLINE __m256i is_set(const std::byte* from, index_t place) {
  const __m256i bit = _mm256_set1_epi8(static_cast<char>(1 << place));
  return _mm256_cmpeq_epi8(_mm256_and_si256(bytes_at(from), bit), bit);
}
/// A byte for each bit: all ones, or zero.
TAPER_INLINE __m256i bytes_of_bits(uint32_t bits) {
  const __m256i from = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2,
                                        2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3),
                bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i byte = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int32_t>(bits)), from);
  return _mm256_cmpeq_epi8(_mm256_and_si256(byte, bit), bit);
}

// How a unit of a format becomes integers, a scale and an offset. The portable decoder is the
// definition (blocks.h).
template <Layout>
struct Format;

template <>
struct Format<Layout::mxfp4> {
  static TAPER_INLINE __m256i values(const std::byte* block, index_t) {
    return lookup(internal::e2m1_levels, block + 1);
  }
  static TAPER_INLINE float scale(const std::byte* block, index_t) {
    return internal::half_power(internal::byte_at(block, 0));
  }
};

template <>
struct Format<Layout::iq4_nl> {
  static TAPER_INLINE __m256i values(const std::byte* block, index_t) {
    return lookup(internal::iq4_levels, block + 2);
  }
  static TAPER_INLINE float scale(const std::byte* block, index_t) { return half_at(block); }
};

template <>
struct Format<Layout::q5_0> {
  static TAPER_INLINE __m256i values(const std::byte* block, index_t) {
    const __m256i low = nibbles(block + 6),
                  high = bytes_of_bits(internal::load_at<uint32_t>(block, 2));
    return _mm256_sub_epi8(low, _mm256_andnot_si256(high, _mm256_set1_epi8(16)));
  }
  static TAPER_INLINE float scale(const std::byte* block, index_t) { return half_at(block); }
};

template <>
struct Format<Layout::q5_1> {
  static TAPER_INLINE __m256i values(const std::byte* block, index_t) {
    const __m256i low = nibbles(block + 8),
                  high = bytes_of_bits(internal::load_at<uint32_t>(block, 4));
    return _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi8(16)));
  }
  static TAPER_INLINE float scale(const std::byte* block, index_t) { return half_at(block); }
  static TAPER_INLINE float offset(const std::byte* block, index_t) { return half_at(block + 2); }
};

template <>
struct Format<Layout::q5_k> {
  static TAPER_INLINE __m256i values(const std::byte* block, index_t unit) {
    const __m256i low = bits_at(block + 48 + unit / 2 * 32, unit % 2 * 4, 4);
    return _mm256_or_si256(low, _mm256_and_si256(is_set(block + 16, unit), _mm256_set1_epi8(16)));
  }
  static TAPER_INLINE float scale(const std::byte* block, index_t unit) {
    int scale = 0, offset = 0;
    internal::six_bits(block + 4, static_cast<int>(unit), &scale, &offset);
    return half_at(block) * static_cast<float>(scale);
  }
  static TAPER_INLINE float offset(const std::byte* block, index_t unit) {
    int scale = 0, offset = 0;
    internal::six_bits(block + 4, static_cast<int>(unit), &scale, &offset);
    return -(half_at(block + 2) * static_cast<float>(offset));
  }
};

template <>
struct Format<Layout::iq4_xs> {
  static TAPER_INLINE __m256i values(const std::byte* block, index_t unit) {
    return lookup(internal::iq4_levels, block + 8 + 16 * unit);
  }
  static TAPER_INLINE float scale(const std::byte* block, index_t unit) {
    const int low = internal::byte_at(block, static_cast<int>(4 + unit / 2)) >> unit % 2 * 4 & 15,
              high = internal::load_at<uint16_t>(block, 2) >> 2 * unit & 3;
    return half_at(block) * static_cast<float>((low | high << 4) - 32);
  }
};

// These have a scale for each half.

template <>
struct Format<Layout::q2_k> {
  static TAPER_INLINE __m256i values(const std::byte* block, index_t unit) {
    return bits_at(block + 16 + unit / 4 * 32, unit % 4 * 2, 2);
  }
  static TAPER_INLINE float scale(const std::byte* block, index_t unit, int half) {
    const int both = internal::byte_at(block, static_cast<int>(2 * unit) + half);
    return half_at(block + 80) * static_cast<float>(both & 15);
  }
  static TAPER_INLINE float offset(const std::byte* block, index_t unit, int half) {
    const int both = internal::byte_at(block, static_cast<int>(2 * unit) + half);
    return -(half_at(block + 82) * static_cast<float>(both >> 4));
  }
};

template <>
struct Format<Layout::q3_k> {
  static TAPER_INLINE __m256i values(const std::byte* block, index_t unit) {
    const __m256i low = bits_at(block + 32 + unit / 4 * 32, unit % 4 * 2, 2);
    return _mm256_sub_epi8(low, _mm256_andnot_si256(is_set(block, unit), _mm256_set1_epi8(4)));
  }
  static TAPER_INLINE float scale(const std::byte* block, index_t unit, int half) {
    const int i = static_cast<int>(2 * unit) + half;
    const int four = internal::byte_at(block, 96 + i % 8) >> i / 8 * 4 & 15,
              two = internal::byte_at(block, 104 + i % 4) >> i / 4 * 2 & 3;
    return half_at(block + 108) * static_cast<float>((four | two << 4) - 32);
  }
};

/// The bytes of a row of weights.
TAPER_INLINE index_t bytes_of_row(const BlockMatrix& w) {
  const BlockSize block = block_of(w.layout);
  return w.depth / block.elements * block.bytes;
}

using Decode = void (*)(const BlockMatrix& w, const index_t* rows, index_t unit, Units& to);

/// What `of` gives for each row.
template <class Of>
TAPER_INLINE __m256 of_rows(const Of& of) {
  return _mm256_setr_ps(of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7));
}

template <Layout layout>
void decode(const BlockMatrix& w, const index_t* rows, index_t unit, Units& to) {
  using F = Format<layout>;
  constexpr BlockSize block = block_of(layout);
  constexpr index_t units = block.elements / unit_elements;
  constexpr bool has_offset =
      layout == Layout::q5_1 || layout == Layout::q5_k || layout == Layout::q2_k;
  constexpr bool has_halves = layout == Layout::q2_k || layout == Layout::q3_k;
  const index_t bytes = bytes_of_row(w), u = unit % units;
  const std::byte* const first = w.data + unit / units * block.bytes;
  const auto at = [&](int i) { return first + rows[i] * bytes; };
  TAPER_UNROLL
  for (int i = 0; i < width; ++i)
    _mm256_store_si256(reinterpret_cast<__m256i*>(to.values[i]), F::values(at(i), u));
  // A vector that is read soon is written as one.
  if constexpr (has_halves) {
    TAPER_UNROLL
    for (int h = 0; h < 2; ++h) {
      _mm256_store_ps(to.scales[h], of_rows([&](int i) { return F::scale(at(i), u, h); }));
      if constexpr (has_offset)
        _mm256_store_ps(to.offsets[h], of_rows([&](int i) { return F::offset(at(i), u, h); }));
    }
  } else {
    _mm256_store_ps(to.scales[0], of_rows([&](int i) { return F::scale(at(i), u); }));
    if constexpr (has_offset)
      _mm256_store_ps(to.offsets[0], of_rows([&](int i) { return F::offset(at(i), u); }));
  }
}
void decode_any(const BlockMatrix& w, const index_t* rows, index_t unit, Units& to) {
  Unit one;
  for (int i = 0; i < width; ++i) {
    w.decode(rows[i], unit, one);
    std::memcpy(to.values[i], one.value, sizeof one.value);
    for (int h = 0; h < 2; ++h) to.scales[h][i] = one.scale[h], to.offsets[h][i] = one.offset[h];
  }
}
Decode decoder_of(Layout layout) {
  switch (layout) {
    case Layout::mxfp4:
      return decode<Layout::mxfp4>;
    case Layout::iq4_nl:
      return decode<Layout::iq4_nl>;
    case Layout::q5_0:
      return decode<Layout::q5_0>;
    case Layout::q5_1:
      return decode<Layout::q5_1>;
    case Layout::q5_k:
      return decode<Layout::q5_k>;
    case Layout::iq4_xs:
      return decode<Layout::iq4_xs>;
    case Layout::q2_k:
      return decode<Layout::q2_k>;
    case Layout::q3_k:
      return decode<Layout::q3_k>;
    default:
      return decode_any;
  }
}

/// Sums of four neighbouring products with a row of weights. Its integers lie between -128 and 127,
/// those of x between -127 and 127: so pairs of products fit in 16 bits.
TAPER_INLINE __m256i products(const int8_t* weights, __m256i x) {
  const __m256i w = _mm256_load_si256(reinterpret_cast<const __m256i*>(weights));
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/// Of one row of x with all rows of weights: the sums of the first sixteen products, and of the
/// other sixteen.
struct HalfSums {
  __m256i first, other;

  TAPER_INLINE HalfSums(const Units& w, __m256i x) {
    __m256i four[2];
    TAPER_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int8_t(*rows)[unit_elements] = w.values + 4 * i;
      four[i] = _mm256_hadd_epi32(_mm256_hadd_epi32(products(rows[0], x), products(rows[1], x)),
                                  _mm256_hadd_epi32(products(rows[2], x), products(rows[3], x)));
    }
    first = _mm256_permute2x128_si256(four[0], four[1], 0x20);
    other = _mm256_permute2x128_si256(four[0], four[1], 0x31);
  }
};

TAPER_INLINE __m256 add(__m256 y, const Units& w, BlockTraits traits, int half, int part,
                        __m256i sum, const RoundedUnit& x) {
  const __m256 scale = _mm256_mul_ps(_mm256_load_ps(w.scales[half]), _mm256_set1_ps(x.scale));
  y = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(sum), y);
  if (!traits.has_offset) return y;
  return _mm256_fmadd_ps(_mm256_load_ps(w.offsets[half]), _mm256_set1_ps(x.weighted[part]), y);
}

}  // namespace

void BlockRows::multiply_avx2(const BlockMatrix& w, index_t first, const RoundedRows& x,
                              index_t row, index_t rows, float* to) {
  const Decode decode = decoder_of(w.layout);
  const BlockTraits traits = traits_of(w.layout);
  index_t of_w[width];
  for (int i = 0; i < width; ++i) of_w[i] = first + i < w.rows ? first + i : w.rows - 1;
  for (index_t r = 0; r < rows; ++r) _mm256_storeu_ps(to + r * width, _mm256_setzero_ps());
  // The next eight rows follow. They are prefetched meanwhile: eight short streams are too many for
  // the processor's own prefetch.
  const index_t bytes = width * bytes_of_row(w),
                bytes_of_unit = w.depth == 0 ? 0 : bytes / w.units();
  const std::byte* soon = w.data + (first + width) * bytes_of_row(w);
  Units units;
  for (index_t u = 0; u < w.units(); ++u, soon += bytes_of_unit) {
    constexpr index_t line = 64;
    for (index_t i = 0; i < bytes_of_unit; i += line) __builtin_prefetch(soon + i);
    decode(w, of_w, u, units);
    for (index_t r = 0; r < rows; ++r) {
      const RoundedUnit& of_x = x.unit(row + r, u);
      const HalfSums sums(
          units, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x.value(row + r, u))));
      __m256 y = _mm256_loadu_ps(to + r * width);
      if (traits.has_halves) {
        y = add(y, units, traits, 0, 0, sums.first, of_x);
        y = add(y, units, traits, 1, 1, sums.other, of_x);
      } else {
        y = add(y, units, traits, 0, 2, _mm256_add_epi32(sums.first, sums.other), of_x);
      }
      _mm256_storeu_ps(to + r * width, y);
    }
  }
}

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
