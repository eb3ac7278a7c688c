// Conversions of f16 and bf16 at the CPU levels that have instructions for them.
#pragma once
#include <cstring>

#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/small_floats.h"

#if TAPER_X86_LEVELS
#include <immintrin.h>
#endif

namespace taper::optimized {

/// Converts `count` elements at a time with a level's instructions. NaNs become quiet.
template <CpuLevel level>
struct SmallLanes {
  static constexpr index_t count = 1;
  template <class E>
  static void widen(const E* x, float* y) {
    *y = portable::to_float(*x);
  }
  template <class E>
  static void narrow(const float* x, E* y) {
    *y = portable::to_small<E>(*x);
  }
};

#if TAPER_X86_LEVELS
#define TAPER_TARGET __attribute__((target("avx2,f16c")))
template <>
struct SmallLanes<CpuLevel::avx2> {
  static constexpr index_t count = 8;
  TAPER_TARGET static __m128i load(const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  }
  TAPER_TARGET static void store(__m128i v, void* to) {
    _mm_storeu_si128(static_cast<__m128i*>(to), v);
  }
  TAPER_TARGET static void widen(const Half* x, float* y) {
    _mm256_storeu_ps(y, _mm256_cvtph_ps(load(x)));
  }
  TAPER_TARGET static void narrow(const float* x, Half* y) {
    store(_mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT), y);
  }
  TAPER_TARGET static void widen(const BFloat16* x, float* y) {
    const __m256i upper = _mm256_slli_epi32(_mm256_cvtepu16_epi32(load(x)), 16);
    _mm256_storeu_ps(y, _mm256_castsi256_ps(upper));
  }
  TAPER_TARGET static void narrow(const float* x, BFloat16* y) {
    const __m256 v = _mm256_loadu_ps(x);
    const __m256i u = _mm256_castps_si256(v), upper = _mm256_srli_epi32(u, 16),
                  odd = _mm256_and_si256(upper, _mm256_set1_epi32(1)),
                  half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)),
                  rounded = _mm256_srli_epi32(_mm256_add_epi32(u, half), 16),
                  quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40)),
                  nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)),
                  result = _mm256_blendv_epi8(rounded, quiet, nan);
    store(_mm_packus_epi32(_mm256_castsi256_si128(result), _mm256_extracti128_si256(result, 1)), y);
  }
};
#undef TAPER_TARGET

// These intrinsics get a mask of all lanes. In those without a mask, GCC 12 warns of an
// uninitialized value.
#define TAPER_TARGET __attribute__((target("avx512f,avx512bw,avx512vl")))
template <>
struct SmallLanes<CpuLevel::avx512> {
  static constexpr index_t count = 16;
  static constexpr unsigned short all = 0xffff;
  TAPER_TARGET static __m256i load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }
  TAPER_TARGET static void store(__m256i v, void* to) {
    _mm256_storeu_si256(static_cast<__m256i*>(to), v);
  }
  TAPER_TARGET static void widen(const Half* x, float* y) {
    _mm512_storeu_ps(y, _mm512_maskz_cvtph_ps(all, load(x)));
  }
  TAPER_TARGET static void narrow(const float* x, Half* y) {
    store(_mm512_maskz_cvtps_ph(all, _mm512_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT), y);
  }
  TAPER_TARGET static void widen(const BFloat16* x, float* y) {
    const __m512i wide = _mm512_maskz_cvtepu16_epi32(all, load(x));
    _mm512_storeu_ps(y, _mm512_castsi512_ps(_mm512_maskz_slli_epi32(all, wide, 16)));
  }
  TAPER_TARGET static void narrow(const float* x, BFloat16* y) {
    const __m512 v = _mm512_loadu_ps(x);
    const __m512i u = _mm512_castps_si512(v), upper = _mm512_maskz_srli_epi32(all, u, 16),
                  odd = _mm512_maskz_and_epi32(all, upper, _mm512_set1_epi32(1)),
                  half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)),
                  rounded = _mm512_maskz_srli_epi32(all, _mm512_add_epi32(u, half), 16),
                  result = _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q),
                                                upper, _mm512_set1_epi32(0x40));
    store(_mm512_maskz_cvtepi32_epi16(all, result), y);
  }
};
#undef TAPER_TARGET
#endif

template <CpuLevel level, class E>
void narrow(index_t n, const float* x, E* y) {
  using Lanes = SmallLanes<level>;
  index_t i = 0;
  for (; i + Lanes::count <= n; i += Lanes::count) Lanes::narrow(x + i, y + i);
  for (; i < n; ++i) y[i] = portable::to_small<E>(x[i]);
}
/// For results that are narrowed again. Narrowing makes every NaN quiet, so the instruction may do
/// so, too.
template <CpuLevel level, class E>
void widen_quietly(index_t n, const E* x, float* y) {
  using Lanes = SmallLanes<level>;
  index_t i = 0;
  for (; i + Lanes::count <= n; i += Lanes::count) Lanes::widen(x + i, y + i);
  for (; i < n; ++i) y[i] = portable::to_float(x[i]);
}
/// Keeps the bits of every NaN, like the portable loop.
template <CpuLevel level>
void widen(index_t n, const Half* x, float* y) {
  constexpr index_t part = 256;
  for (index_t at = 0; at < n; at += part) {
    const index_t end = n - at < part ? n : at + part;
    int nan = 0;
    for (index_t i = at; i < end; ++i) nan |= (x[i].bits & 0x7fff) > 0x7c00;
    index_t i = at;
    if (nan == 0) widen_quietly<level>(end - at, x + at, y + at), i = end;
    for (; i < end; ++i) y[i] = portable::to_float(x[i]);
  }
}

template <CpuLevel level, class E>
void widen_block(index_t n, const void* from, float* to) {
  widen_quietly<level>(n, static_cast<const E*>(from), to);
}
template <CpuLevel level, class E>
void narrow_block(index_t n, const float* from, void* to) {
  narrow<level>(n, from, static_cast<E*>(to));
}
/// Widens n elements of f16 or bf16. NaNs become quiet.
template <CpuLevel level>
void widen_small(DType dtype, index_t n, const void* from, float* to) {
  if (dtype == DType::f16)
    AtLevel<level, &widen_block<level, Half>>::call(n, from, to);
  else
    AtLevel<level, &widen_block<level, BFloat16>>::call(n, from, to);
}
template <CpuLevel level>
void narrow_small(DType dtype, index_t n, const float* from, void* to) {
  if (dtype == DType::f16)
    AtLevel<level, &narrow_block<level, Half>>::call(n, from, to);
  else
    AtLevel<level, &narrow_block<level, BFloat16>>::call(n, from, to);
}
/// The conversions for run_small and the matrix products.
template <CpuLevel level>
inline constexpr portable::SmallFloats small_floats{widen_small<level>, narrow_small<level>};
#if TAPER_X86_LEVELS
template <>
inline constexpr portable::SmallFloats small_floats<CpuLevel::avx512_bf16> =
    small_floats<CpuLevel::avx512>;
#endif

/// The Load (walk.h) of a small float at a level.
template <class E, CpuLevel level>
void load_small(const void* from, index_t stride, index_t n, void* to) {
  constexpr DType dtype = std::is_same_v<E, Half> ? DType::f16 : DType::bf16;
  if (stride == 1) return widen_small<level>(dtype, n, from, static_cast<float*>(to));
  const E* x = static_cast<const E*>(from);
  for (index_t i = 0; i < n; ++i) static_cast<float*>(to)[i] = portable::to_float(x[i * stride]);
}

/// The Store (walk.h) of a small float at a level.
template <class E, CpuLevel level>
void store_small(const void* from, index_t n, void* to) {
  constexpr DType dtype = std::is_same_v<E, Half> ? DType::f16 : DType::bf16;
  narrow_small<level>(dtype, n, static_cast<const float*>(from), to);
}

/// The loops of a driver at a level, which convert small floats with the level's instructions.
template <CpuLevel level>
struct SmallLoopsAt : LoopsAt<level> {
  static portable::Load loader(DType from, DType to) {
    if (to == DType::f32 && from == DType::f16) return load_small<Half, level>;
    if (to == DType::f32 && from == DType::bf16) return load_small<BFloat16, level>;
    return portable::loader(from, to);
  }
  static portable::Store storer(DType from, DType to) {
    if (from == DType::f32 && to == DType::f16) return store_small<Half, level>;
    if (from == DType::f32 && to == DType::bf16) return store_small<BFloat16, level>;
    return portable::storer(from, to);
  }
};

}  // namespace taper::optimized
