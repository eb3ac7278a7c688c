// Conversions of f16 and bf16 at the CPU levels that have instructions for them.
#pragma once
#include <cstring>

#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/small_floats.h"

#if TAPER_X86_LEVELS
#include <immintrin.h>

namespace taper::optimized {

// f16 through the processor's instructions, eight at a time.
__attribute__((target("avx2,f16c"))) inline void narrow_eight(const float* x, Half* y) {
  const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT);
  std::memcpy(y, &h, sizeof h);
}
__attribute__((target("avx2,f16c"))) inline void widen_eight(const Half* x, float* y) {
  __m128i h;
  std::memcpy(&h, x, sizeof h);
  _mm256_storeu_ps(y, _mm256_cvtph_ps(h));
}

inline void narrow(index_t n, const float* x, Half* y) {
  index_t i = 0;
  for (; i + 8 <= n; i += 8) narrow_eight(x + i, y + i);
  for (; i < n; ++i) y[i] = portable::to_small<Half>(x[i]);
}
// For results that are narrowed again, which makes every NaN quiet, as the instruction does here.
inline void widen_quietly(index_t n, const Half* x, float* y) {
  index_t i = 0;
  for (; i + 8 <= n; i += 8) widen_eight(x + i, y + i);
  for (; i < n; ++i) y[i] = portable::to_float(x[i]);
}
// The instruction makes every NaN quiet; the portable loop keeps its bits.
inline void widen(index_t n, const Half* x, float* y) {
  constexpr index_t part = 256;
  for (index_t at = 0; at < n; at += part) {
    const index_t end = n - at < part ? n : at + part;
    int nan = 0;
    for (index_t i = at; i < end; ++i) nan |= (x[i].bits & 0x7fff) > 0x7c00;
    index_t i = at;
    if (nan == 0) widen_quietly(end - at, x + at, y + at), i = end;
    for (; i < end; ++i) y[i] = portable::to_float(x[i]);
  }
}
inline void narrow(index_t n, const float* x, BFloat16* y) {
  for (index_t i = 0; i < n; ++i) y[i] = portable::to_small<BFloat16>(x[i]);
}
inline void widen_quietly(index_t n, const BFloat16* x, float* y) {
  for (index_t i = 0; i < n; ++i) y[i] = portable::to_float(x[i]);
}

template <class E>
void widen_block(index_t n, const void* from, float* to) {
  widen_quietly(n, static_cast<const E*>(from), to);
}
template <class E>
void narrow_block(index_t n, const float* from, void* to) {
  narrow(n, from, static_cast<E*>(to));
}
/// n elements of f16 or bf16, whose NaNs become quiet.
template <CpuLevel level>
void widen_small(DType dtype, index_t n, const void* from, float* to) {
  if (dtype == DType::f16)
    AtLevel<level, &widen_block<Half>>::call(n, from, to);
  else
    AtLevel<level, &widen_block<BFloat16>>::call(n, from, to);
}
template <CpuLevel level>
void narrow_small(DType dtype, index_t n, const float* from, void* to) {
  if (dtype == DType::f16)
    AtLevel<level, &narrow_block<Half>>::call(n, from, to);
  else
    AtLevel<level, &narrow_block<BFloat16>>::call(n, from, to);
}
/// For run_small.
template <CpuLevel level>
inline constexpr portable::SmallFloats small_floats{widen_small<level>, narrow_small<level>};

/// The loader (walk.h) of a small float at a level.
template <class E, CpuLevel level>
void load_small(const void* from, index_t stride, index_t n, void* to) {
  constexpr DType dtype = std::is_same_v<E, Half> ? DType::f16 : DType::bf16;
  if (stride == 1) return widen_small<level>(dtype, n, from, static_cast<float*>(to));
  const E* x = static_cast<const E*>(from);
  for (index_t i = 0; i < n; ++i) static_cast<float*>(to)[i] = portable::to_float(x[i * stride]);
}

/// A driver's loops at a level, which read small floats through its conversions.
template <CpuLevel level>
struct SmallLoopsAt : LoopsAt<level> {
  static portable::Load loader(DType from, DType to) {
    if (to == DType::f32 && from == DType::f16) return load_small<Half, level>;
    if (to == DType::f32 && from == DType::bf16) return load_small<BFloat16, level>;
    return portable::loader(from, to);
  }
};

}  // namespace taper::optimized
#endif
