// Plain functions compiled for wider vectors. Every element goes through the same IEEE 754
// operations in the same order: nothing is contracted or reassociated. So the bits are those of the
// portable function, unless the function asks for fused multiply-adds.
#pragma once
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/portable/walk.h"

namespace taper::optimized {

/// `AtLevel<level, f>::call(arguments…)` is f(arguments…), compiled for `level`. The functions that
/// f calls must be visible here and inlinable: a function that is not inlined would not use the
/// wider vectors.
template <CpuLevel level, auto f>
struct AtLevel;

template <class R, class... A, R (*f)(A...)>
struct AtLevel<CpuLevel::portable, f> {
  static R call(A... a) { return f(a...); }
};

#if TAPER_X86_LEVELS
#ifdef __clang__
#define TAPER_WIDEST
#else
#define TAPER_WIDEST ",prefer-vector-width=512"
#endif
#define TAPER_AT_LEVEL(level, instructions)                                                  \
  template <class R, class... A, R (*f)(A...)>                                               \
  struct AtLevel<CpuLevel::level, f> {                                                       \
    __attribute__((target(instructions), flatten)) static R call(A... a) { return f(a...); } \
  };
TAPER_AT_LEVEL(avx2, "avx2,fma,f16c")
TAPER_AT_LEVEL(avx512, "avx512f,avx512vl,avx512dq,avx512bw,f16c" TAPER_WIDEST)
#undef TAPER_AT_LEVEL
#undef TAPER_WIDEST
#endif

/// The loops of a driver (portable::PlainLoops) at a level.
template <CpuLevel level>
struct LoopsAt {
  template <auto f, class... A>
  static auto call(A&&... a) {
    return AtLevel<level, f>::call(static_cast<A&&>(a)...);
  }
  static portable::Load loader(DType from, DType to) { return portable::loader(from, to); }
  static portable::Store storer(DType from, DType to) { return portable::storer(from, to); }
};

}  // namespace taper::optimized

/// Defines the record <op>_<variant>_<level>.
#define TAPER_WIDE_KERNEL(op, variant, level, ...) \
  TAPER_RECORD(op, op##_##variant##_##level, features_of(CpuLevel::level), {}, __VA_ARGS__)
