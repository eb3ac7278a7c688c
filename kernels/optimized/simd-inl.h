// Vectors of f32 for the CPU level that is being compiled. They are those of Google Highway. Where
// Highway has no SIMD (x86 below SSSE3, unknown machines), they are four floats in the compiler's
// own vectors. foreach_target.h includes this file once for each level, so it has no #pragma once.
#if defined(TAPER_KERNELS_OPTIMIZED_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAPER_KERNELS_OPTIMIZED_SIMD_INL_H_
#undef TAPER_KERNELS_OPTIMIZED_SIMD_INL_H_
#else
#define TAPER_KERNELS_OPTIMIZED_SIMD_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"
#include "taper/kernels/portable/small_floats.h"

/// Before a loop over the vectors of a tile, which then stay in registers.
#ifndef TAPER_UNROLL
#define TAPER_UNROLL _Pragma("GCC unroll 24")
#endif

/// Defines what TAPER_DECLARE_LEVEL_TABLES declares, from a table of each level's namespace. A
/// compiler whose baseline is above a level leaves the level out: the baseline takes its place.
#ifndef TAPER_DEFINE_LEVEL_TABLES
#if TAPER_X86_LEVELS
#if HWY_TARGETS & HWY_AVX2
#define TAPER_AVX2_TABLE(table) N_AVX2::table
#else
#define TAPER_AVX2_TABLE(table) HWY_STATIC_DISPATCH(table)
#endif
#define TAPER_DEFINE_LEVEL_TABLES(Type, name, table)           \
  constexpr Type name##_portable = HWY_STATIC_DISPATCH(table); \
  constexpr Type name##_avx2 = TAPER_AVX2_TABLE(table);        \
  constexpr Type name##_avx512 = N_AVX3::table;
#else
#define TAPER_DEFINE_LEVEL_TABLES(Type, name, table) \
  constexpr Type name##_portable = HWY_STATIC_DISPATCH(table);
#endif
#endif

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {

// Functions besides the vectors themselves:
//
// transposed<width> returns four vectors: element i of line[k] is from[i * across_stride + k].
// load_square returns `lanes` such vectors. transpose<width, groups> writes to[k * to_row + i] =
// from[i * across_stride + k] for i in [0, width), k in [0, 4 groups). `width` is 4, 8 or 16, and
// at most `lanes`.
//
// load_pairs<lanes> loads four such lines of bf16, with two neighbours in each lane. After
// `turned`, lane c of line p holds from[c][k + 2 p] and from[c][k + 2 p + 1]. lower_halves and
// upper_halves widen them. upper_halves_shifted takes one instruction more, but no register for a
// mask.
//
// turn_small transposes f16: to[i * to_row + c] = from[c][k + i] for i in [0, small_lines), c in
// [0, 8).
//
// load_pairs and turn_small may read up to 64 bytes behind the end of a column.

// Its constructors are written out, so that gcc compiles them for the level.
template <class V>
struct Lines {
  HWY_INLINE Lines() {}
  HWY_INLINE Lines(V a, V b, V c, V d) : line{a, b, c, d} {}
  V line[4];
};

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

typedef float Vec __attribute__((vector_size(16)));
constexpr int lanes = 4, registers = 16, small_lines = 8;

HWY_INLINE Vec load(const float* from) {
  Vec v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
HWY_INLINE void store(Vec v, float* to) { std::memcpy(to, &v, sizeof v); }
HWY_INLINE Vec broadcast(float x) { return Vec{x, x, x, x}; }
HWY_INLINE Vec multiply_add(Vec a, Vec b, Vec c) {
  return a * b + c;
}  // two roundings: there is no FMA at this level
HWY_INLINE Vec add(Vec a, Vec b) { return a + b; }
HWY_INLINE Vec subtract(Vec a, Vec b) { return a - b; }
HWY_INLINE Vec multiply(Vec a, Vec b) { return a * b; }
/// max(v, 0); NaN stays.
HWY_INLINE Vec relu(Vec v) { return v < broadcast(0) ? broadcast(0) : v; }
/// x < low ? low : x > high ? high : x, so that NaN stays NaN. low <= high.
HWY_INLINE Vec between(Vec x, Vec low, Vec high) { return x < low ? low : x > high ? high : x; }
/// The first `count` floats of a vector, at most `lanes`. Others are loaded as 0, and not stored.
HWY_INLINE Vec load_first(const float* from, index_t count) {
  Vec v = broadcast(0);
  for (int i = 0; i < lanes; ++i)
    if (i < count) v[i] = from[i];
  return v;
}
HWY_INLINE void store_first(Vec v, float* to, index_t count) {
  for (int i = 0; i < lanes; ++i)
    if (i < count) to[i] = v[i];
}

/// `lanes` small floats, widened.
template <class E>
HWY_INLINE Vec load_small(const E* from) {
  return Vec{portable::to_float(from[0]), portable::to_float(from[1]), portable::to_float(from[2]),
             portable::to_float(from[3])};
}
template <int width>
HWY_INLINE Lines<Vec> load_pairs(const BFloat16* const* from, index_t k) {
  Lines<Vec> l;
  for (int i = 0; i < 4; ++i) std::memcpy(&l.line[i], from[i] + k, sizeof(Vec));
  return l;
}
typedef uint32_t Bits __attribute__((vector_size(16)));
HWY_INLINE Vec lower_halves(Vec pairs) { return (Vec)((Bits)pairs << 16); }
HWY_INLINE Vec upper_halves(Vec pairs) { return (Vec)((Bits)pairs & 0xffff0000u); }
HWY_INLINE Vec upper_halves_shifted(Vec pairs) { return (Vec)((Bits)pairs >> 16 << 16); }

template <class E>
HWY_INLINE void turn_small(const E* const* from, index_t k, E* to, index_t to_row) {
  for (index_t i = 0; i < small_lines; ++i)
    for (index_t c = 0; c < 8; ++c) to[i * to_row + c] = from[c][k + i];
}

/// Elements 0, 2, 4, … of a, then of b.
HWY_INLINE Vec even(Vec a, Vec b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6); }

template <int width>
HWY_INLINE Lines<Vec> load_lines(const float* from, index_t across_stride) {
  static_assert(width == lanes);
  return {load(from), load(from + across_stride), load(from + 2 * across_stride),
          load(from + 3 * across_stride)};
}
template <int width>
HWY_INLINE Lines<Vec> turned(const Lines<Vec>& l) {
  const Vec ab_low = __builtin_shufflevector(l.line[0], l.line[1], 0, 4, 1, 5),
            ab_high = __builtin_shufflevector(l.line[0], l.line[1], 2, 6, 3, 7);
  const Vec cd_low = __builtin_shufflevector(l.line[2], l.line[3], 0, 4, 1, 5),
            cd_high = __builtin_shufflevector(l.line[2], l.line[3], 2, 6, 3, 7);
  return {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
          __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
          __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
          __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
}
template <int width>
HWY_INLINE void store_line(Vec v, float* to) {
  store(v, to);
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<float, 16>;
using Vec = hn::Vec<Tag>;
constexpr int lanes = static_cast<int>(hn::MaxLanes(Tag())), small_lines = 2 * lanes;
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int registers = 32;
#else
constexpr int registers = 16;
#endif

HWY_INLINE Vec load(const float* from) { return hn::LoadU(Tag(), from); }
HWY_INLINE void store(Vec v, float* to) { hn::StoreU(v, Tag(), to); }
HWY_INLINE Vec broadcast(float x) { return hn::Set(Tag(), x); }
HWY_INLINE Vec multiply_add(Vec a, Vec b, Vec c) { return hn::MulAdd(a, b, c); }
HWY_INLINE Vec add(Vec a, Vec b) { return hn::Add(a, b); }
HWY_INLINE Vec subtract(Vec a, Vec b) { return hn::Sub(a, b); }
HWY_INLINE Vec multiply(Vec a, Vec b) { return hn::Mul(a, b); }
/// max(v, 0); NaN stays.
HWY_INLINE Vec relu(Vec v) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::Max(hn::Zero(Tag()), v);  // as in `between`
#else
  return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(Tag())), v);
#endif
}
/// x < low ? low : x > high ? high : x, so that NaN stays NaN. low <= high.
HWY_INLINE Vec between(Vec x, Vec low, Vec high) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  // The instructions of x86 return the second number if none is larger, or one is NaN.
  return hn::Min(high, hn::Max(low, x));
#else
  return hn::IfThenElse(hn::Lt(x, low), low, hn::IfThenElse(hn::Gt(x, high), high, x));
#endif
}
/// The first `count` floats of a vector, at most `lanes`. Others are loaded as 0, and not stored.
/// Memory may end behind them, and other threads may write there.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
HWY_INLINE Vec load_first(const float* from, index_t count) {
  return hn::MaskedLoad(hn::FirstN(Tag(), static_cast<size_t>(count)), Tag(), from);
}
HWY_INLINE void store_first(Vec v, float* to, index_t count) {
  hn::BlendedStore(v, hn::FirstN(Tag(), static_cast<size_t>(count)), Tag(), to);
}
#else
// Without masks, Highway reads a whole vector, and on Arm it writes the others back.
HWY_INLINE Vec load_first(const float* from, index_t count) {
  alignas(16) float lane[lanes] = {};
  for (int i = 0; i < lanes; ++i)
    if (i < count) lane[i] = from[i];
  return load(lane);
}
HWY_INLINE void store_first(Vec v, float* to, index_t count) {
  alignas(16) float lane[lanes];
  store(v, lane);
  for (int i = 0; i < lanes; ++i)
    if (i < count) to[i] = lane[i];
}
#endif

/// `lanes` small floats, widened.
template <class E>
HWY_INLINE Vec load_small(const E* from) {
  using Small = std::conditional_t<std::is_same_v<E, Half>, hwy::float16_t, hwy::bfloat16_t>;
  const hn::Rebind<Small, Tag> d;
  return hn::PromoteTo(Tag(), hn::LoadU(d, reinterpret_cast<const Small*>(from)));
}
// Lanes [4 i, 4 i + 4) hold four pairs of column 4 i.
template <int width>
HWY_INLINE auto load_some_pairs(const BFloat16* const* from, index_t k) {
  const hn::FixedTag<float, width> d;
  if constexpr (width == 4)
    return hn::LoadU(d, reinterpret_cast<const float*>(from[0] + k));
  else
    return hn::Combine(d, load_some_pairs<width / 2>(from + width / 2, k),
                       load_some_pairs<width / 2>(from, k));
}
template <int width>
HWY_INLINE Lines<Vec> load_pairs(const BFloat16* const* from, index_t k) {
  return {load_some_pairs<width>(from, k), load_some_pairs<width>(from + 1, k),
          load_some_pairs<width>(from + 2, k), load_some_pairs<width>(from + 3, k)};
}
HWY_INLINE Vec lower_halves(Vec pairs) {
  const hn::RebindToUnsigned<Tag> d;
  return hn::BitCast(Tag(), hn::ShiftLeft<16>(hn::BitCast(d, pairs)));
}
HWY_INLINE Vec upper_halves(Vec pairs) {
  const hn::RebindToUnsigned<Tag> d;
  return hn::BitCast(Tag(), hn::And(hn::BitCast(d, pairs), hn::Set(d, 0xffff0000u)));
}
HWY_INLINE Vec upper_halves_shifted(Vec pairs) {
  const hn::RebindToUnsigned<Tag> d;
  return hn::BitCast(Tag(), hn::ShiftLeft<16>(hn::ShiftRight<16>(hn::BitCast(d, pairs))));
}

// Stores block i of eight elements to to[8 i * to_row].
template <class D, class V>
HWY_INLINE void store_blocks(D d, V v, uint16_t* to, index_t to_row) {
  if constexpr (hn::MaxLanes(D()) == 8) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    constexpr index_t rows = static_cast<index_t>(hn::MaxLanes(half));
    store_blocks(half, hn::LowerHalf(half, v), to, to_row);
    store_blocks(half, hn::UpperHalf(half, v), to + rows * to_row, to_row);
  }
}
template <class E>
HWY_INLINE void turn_small(const E* const* from, index_t k, E* to, index_t to_row) {
  const hn::Repartition<uint16_t, Tag> ones;
  const hn::Repartition<uint32_t, Tag> twos;
  const hn::Repartition<uint64_t, Tag> fours;
  using Ones = hn::Vec<decltype(ones)>;
  using Twos = hn::Vec<decltype(twos)>;
  Ones column[8];
  _Pragma("GCC unroll 8") for (int c = 0; c < 8; ++c) column[c] =
      hn::LoadU(ones, reinterpret_cast<const uint16_t*>(from[c] + k));
  Twos lower[4], upper[4];  // of two columns
  _Pragma("GCC unroll 4") for (int c = 0; c < 4; ++c) {
    lower[c] = hn::BitCast(twos, hn::InterleaveLower(ones, column[2 * c], column[2 * c + 1]));
    upper[c] = hn::BitCast(twos, hn::InterleaveUpper(ones, column[2 * c], column[2 * c + 1]));
  }
  uint16_t* line = reinterpret_cast<uint16_t*>(to);
  const auto next_line = [&](auto v) HWY_ATTR {
    store_blocks(ones, hn::BitCast(ones, v), line, to_row);
    line += to_row;
  };
  const auto four_lines = [&](const Twos* two) HWY_ATTR {
    const auto a = hn::BitCast(fours, hn::InterleaveLower(twos, two[0], two[1])),
               b = hn::BitCast(fours, hn::InterleaveLower(twos, two[2], two[3])),
               c = hn::BitCast(fours, hn::InterleaveUpper(twos, two[0], two[1])),
               d = hn::BitCast(fours, hn::InterleaveUpper(twos, two[2], two[3]));
    next_line(hn::InterleaveLower(fours, a, b));
    next_line(hn::InterleaveUpper(fours, a, b));
    next_line(hn::InterleaveLower(fours, c, d));
    next_line(hn::InterleaveUpper(fours, c, d));
  };
  four_lines(lower);
  four_lines(upper);
}

/// Elements 0, 2, 4, … of a, then of b.
HWY_INLINE Vec even(Vec a, Vec b) { return hn::ConcatEven(Tag(), b, a); }

// `width` floats: four from each of width / 4 places, which are `stride` apart.
template <int width>
HWY_INLINE auto load_fours(const float* from, index_t stride) {
  const hn::FixedTag<float, width> d;
  if constexpr (width == 4)
    return hn::LoadU(d, from);
  else
    return hn::Combine(d, load_fours<width / 2>(from + width / 8 * stride, stride),
                       load_fours<width / 2>(from, stride));
}

template <int width>
using VecOf = hn::Vec<hn::FixedTag<float, width> >;

// Transposes 4 x 4 elements in each block of four lanes.
template <int width>
HWY_INLINE Lines<VecOf<width> > load_lines(const float* from, index_t across_stride) {
  return {load_fours<width>(from, 4 * across_stride),
          load_fours<width>(from + across_stride, 4 * across_stride),
          load_fours<width>(from + 2 * across_stride, 4 * across_stride),
          load_fours<width>(from + 3 * across_stride, 4 * across_stride)};
}
template <int width>
HWY_INLINE Lines<VecOf<width> > turned(const Lines<VecOf<width> >& l) {
  const hn::FixedTag<float, width> d;
  const hn::FixedTag<uint64_t, width / 2> pairs;
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, l.line[0], l.line[1])),
             ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, l.line[0], l.line[1])),
             cd_low = hn::BitCast(pairs, hn::InterleaveLower(d, l.line[2], l.line[3])),
             cd_high = hn::BitCast(pairs, hn::InterleaveUpper(d, l.line[2], l.line[3]));
  return {hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, cd_low)),
          hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, cd_low)),
          hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, cd_high)),
          hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, cd_high))};
}
template <int width>
HWY_INLINE void store_line(VecOf<width> v, float* to) {
  hn::StoreU(v, hn::FixedTag<float, width>(), to);
}

#endif

/// Writes the sums of a tile to the rows of c, or adds them to these.
template <int rows, int vectors>
HWY_INLINE void store_tile(const Vec (&sum)[rows][vectors], float* c, index_t c_row,
                           bool add_to_c) {
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r, c += c_row) {
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v)
      store(add_to_c ? add(load(c + v * lanes), sum[r][v]) : sum[r][v], c + v * lanes);
  }
}

/// The same. Then a number is added to each column if `bias` is not nullptr.
template <int rows, int vectors>
HWY_INLINE void store_tile(const Vec (&sum)[rows][vectors], float* c, index_t c_row, bool add_to_c,
                           const float* bias) {
  if (bias == nullptr) return store_tile(sum, c, c_row, add_to_c);
  Vec last[vectors];
  TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) last[v] = load(bias + v * lanes);
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r, c += c_row) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) {
    const Vec whole = add_to_c ? add(load(c + v * lanes), sum[r][v]) : sum[r][v];
    store(add(whole, last[v]), c + v * lanes);
  }
}

template <int width>
HWY_INLINE auto transposed(const float* from, index_t across_stride) {
  return turned<width>(load_lines<width>(from, across_stride));
}

#if HWY_TARGET == HWY_AVX3
// Loads both halves of a cache line together. At a stride that is a power of two, the line would be
// evicted before the second half is loaded. Blocks of four lanes are exchanged between four lines,
// then lanes within blocks.
HWY_INLINE void load_square(const float* from, index_t across_stride, Vec* line) {
  const hn::FixedTag<float, 8> half;
  Vec low[8], high[8];
  _Pragma("GCC unroll 8") for (int c = 0; c < 8; ++c) {
    const float *a = from + c * across_stride, *b = from + (c + 8) * across_stride;
    low[c] = hn::Combine(Tag(), hn::LoadU(half, b), hn::LoadU(half, a));
    high[c] = hn::Combine(Tag(), hn::LoadU(half, b + 8), hn::LoadU(half, a + 8));
  }
  const auto turn_half = [](const Vec* x, Vec* to) HWY_ATTR {
    Lines<Vec> even, odd;
    _Pragma("GCC unroll 4") for (int c = 0; c < 4; ++c) {
      even.line[c] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(x[c + 4]), x[c]);
      odd.line[c] = hn::OddEvenBlocks(x[c + 4], hn::SwapAdjacentBlocks(x[c]));
    }
    even = turned<16>(even), odd = turned<16>(odd);
    _Pragma("GCC unroll 4") for (int k = 0; k < 4; ++k) {
      to[k] = even.line[k];
      to[k + 4] = odd.line[k];
    }
  };
  turn_half(low, line);
  turn_half(high, line + 8);
}
#else
HWY_INLINE void load_square(const float* from, index_t across_stride, Vec* line) {
  _Pragma("GCC unroll 4") for (int k = 0; k < lanes; k += 4) {
    const auto four = transposed<lanes>(from + k, across_stride);
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; ++i) line[k + i] = four.line[i];
  }
}
#endif

template <int width, int groups>
HWY_INLINE void transpose(const float* from, index_t across_stride, float* to, index_t to_row) {
  if constexpr (width == 16 && groups == 4) {
    Vec line[16];
    load_square(from, across_stride, line);
    _Pragma("GCC unroll 16") for (int k = 0; k < 16; ++k) store(line[k], to + k * to_row);
  } else {
    decltype(load_lines<width>(from, 0)) lines[groups];
    _Pragma("GCC unroll 4") for (int g = 0; g < groups; ++g) lines[g] =
        load_lines<width>(from + 4 * g, across_stride);
    _Pragma("GCC unroll 4") for (int g = 0; g < groups; ++g) {
      const auto t = turned<width>(lines[g]);
      _Pragma("GCC unroll 4") for (int k = 0; k < 4; ++k)
          store_line<width>(t.line[k], to + (4 * g + k) * to_row);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#endif
