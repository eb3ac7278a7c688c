// Vectors of f32 for the CPU level that is being compiled: Google Highway's, or four floats of the
// compiler's own where Highway has no SIMD (x86 below SSSE3, unknown machines). Included once per
// level by foreach_target.h: no #pragma once.
#if defined(TAPER_KERNELS_OPTIMIZED_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAPER_KERNELS_OPTIMIZED_SIMD_INL_H_
#undef TAPER_KERNELS_OPTIMIZED_SIMD_INL_H_
#else
#define TAPER_KERNELS_OPTIMIZED_SIMD_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

typedef float Vec __attribute__((vector_size(16)));
constexpr int lanes = 4, registers = 16;

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
HWY_INLINE Vec multiply(Vec a, Vec b) { return a * b; }
/// max(v, 0), and NaN stays NaN.
HWY_INLINE Vec relu(Vec v) { return v < broadcast(0) ? broadcast(0) : v; }

#else

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<float, 16>;
using Vec = hn::Vec<Tag>;
constexpr int lanes = static_cast<int>(hn::MaxLanes(Tag()));
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
HWY_INLINE Vec multiply(Vec a, Vec b) { return hn::Mul(a, b); }
/// max(v, 0), and NaN stays NaN.
HWY_INLINE Vec relu(Vec v) { return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(Tag())), v); }

#endif

}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#endif
