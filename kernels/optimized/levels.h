// Which CPU levels beyond the portable one this library has records for, and how a record is made
// for each.
#pragma once
#include "taper/kernels/kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define TAPER_X86_LEVELS 1
#else
#define TAPER_X86_LEVELS 0
#endif

/// Defines `<op>_f32` and, on x86-64, `<op>_f32_avx2` and `<op>_f32_avx512` from function templates
/// over CpuLevel.
#define TAPER_KERNEL_AT_LEVEL(op, name, level, prepare, run)                                  \
  constexpr decltype(name) name =                                                             \
      ::taper::make_kernel<::taper::ops::op, prepare<CpuLevel::level>, run<CpuLevel::level>>( \
          #name, CpuLevel::level);
#if TAPER_X86_LEVELS
#define TAPER_KERNEL_LEVELS(op, prepare, run)                  \
  TAPER_KERNEL_AT_LEVEL(op, op##_f32, portable, prepare, run)  \
  TAPER_KERNEL_AT_LEVEL(op, op##_f32_avx2, avx2, prepare, run) \
  TAPER_KERNEL_AT_LEVEL(op, op##_f32_avx512, avx512, prepare, run)
#else
#define TAPER_KERNEL_LEVELS(op, prepare, run) \
  TAPER_KERNEL_AT_LEVEL(op, op##_f32, portable, prepare, run)
#endif
