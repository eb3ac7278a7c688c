// The instruction sets for which this library compiles its loops, and how to define a record for
// each of them.
#pragma once
#include "taper/kernels/kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define TAPER_X86_LEVELS 1
#else
#define TAPER_X86_LEVELS 0
#endif

namespace taper::optimized {

/// The instructions for one compilation of a loop. Each level includes the ones before it.
enum class CpuLevel : uint8_t { portable, avx2, avx512, avx512_bf16 };

/// The features that a machine must have to run a level.
constexpr CpuFeatures features_of(CpuLevel level) {
  switch (level) {
    case CpuLevel::avx2:
      return CpuFeature::avx2;
    case CpuLevel::avx512:
      return with_implied(CpuFeature::avx512);
    case CpuLevel::avx512_bf16:
      return with_implied(CpuFeature::avx512_bf16);
    default:
      return {};
  }
}

template <CpuLevel>
constexpr Span<const Packing> no_packings = {};

}  // namespace taper::optimized

/// Declares a table of functions that is compiled once per level, and `name<level>()`: the table of
/// a level, whether or not this machine can run it. simd-inl.h defines it:
/// TAPER_DEFINE_LEVEL_TABLES.
#if TAPER_X86_LEVELS
#define TAPER_DECLARE_LEVEL_TABLES(Type, name)                     \
  extern const Type name##_portable, name##_avx2, name##_avx512;   \
  template <CpuLevel level>                                        \
  constexpr const Type& name() {                                   \
    if constexpr (level >= CpuLevel::avx512) return name##_avx512; \
    if constexpr (level == CpuLevel::avx2) return name##_avx2;     \
    return name##_portable;                                        \
  }
#else
#define TAPER_DECLARE_LEVEL_TABLES(Type, name) \
  extern const Type name##_portable;           \
  template <CpuLevel level>                    \
  constexpr const Type& name() {               \
    return name##_portable;                    \
  }
#endif

/// Defines `<op>_f32` and, on x86-64, `<op>_f32_avx2` and `<op>_f32_avx512` from function templates
/// over CpuLevel. The second macro gives the records their Packings, a template over CpuLevel, too.
#define TAPER_KERNEL_AT_LEVEL(op, name, level, prepare, run, packings)            \
  TAPER_RECORD(op, name, features_of(CpuLevel::level), packings<CpuLevel::level>, \
               prepare<CpuLevel::level>, run<CpuLevel::level>)
#if TAPER_X86_LEVELS
#define TAPER_PACKING_KERNEL_LEVELS(op, ...)                  \
  TAPER_KERNEL_AT_LEVEL(op, op##_f32, portable, __VA_ARGS__)  \
  TAPER_KERNEL_AT_LEVEL(op, op##_f32_avx2, avx2, __VA_ARGS__) \
  TAPER_KERNEL_AT_LEVEL(op, op##_f32_avx512, avx512, __VA_ARGS__)
#else
#define TAPER_PACKING_KERNEL_LEVELS(op, ...) \
  TAPER_KERNEL_AT_LEVEL(op, op##_f32, portable, __VA_ARGS__)
#endif
#define TAPER_KERNEL_LEVELS(op, prepare, run) \
  TAPER_PACKING_KERNEL_LEVELS(op, prepare, run, no_packings)
