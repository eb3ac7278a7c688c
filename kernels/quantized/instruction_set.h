// What the sources of tiles have in common: the vectors of their processor, and how functions may
// use instructions that not every processor has.
#pragma once
#if defined(__x86_64__) && defined(__GNUC__)
#define TAPER_TILES_X86 1
#define TAPER_TILES_ARM64 0
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__GNUC__) && !defined(__AARCH64EB__)
#define TAPER_TILES_X86 0
#define TAPER_TILES_ARM64 1
#include <arm_neon.h>
#else
#define TAPER_TILES_X86 0
#define TAPER_TILES_ARM64 0
#endif

#if TAPER_TILES_X86 || TAPER_TILES_ARM64
#define TAPER_INLINE inline __attribute__((always_inline))
#define TAPER_UNROLL _Pragma("GCC unroll 16")
#define TAPER_TEXT_OF(x) #x
/// All functions between these may use the instructions.
#ifdef __clang__
#define TAPER_BEGIN_TARGET(features) \
  _Pragma(                           \
      TAPER_TEXT_OF(clang attribute push(__attribute__((target(features))), apply_to = function)))
#define TAPER_END_TARGET _Pragma("clang attribute pop")
#else
#define TAPER_BEGIN_TARGET(features) \
  _Pragma("GCC push_options") _Pragma(TAPER_TEXT_OF(GCC target features))
#define TAPER_END_TARGET _Pragma("GCC pop_options")
#endif
#endif

#if TAPER_TILES_ARM64
#ifdef __clang__
#define TAPER_DOTPROD "dotprod"
#define TAPER_I8MM "dotprod,i8mm"
#else
#define TAPER_DOTPROD "arch=armv8.2-a+dotprod"
#define TAPER_I8MM "arch=armv8.2-a+dotprod+i8mm"
#endif
/// Adds products of signed bytes: four for each sum. Old compilers know the intrinsic only if all
/// of the source may use it.
#define TAPER_ADD_DOT_PRODUCTS(sum, a, b) \
  __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b))
/// Adds products of two rows of eight signed bytes with two others: sum[2 i + j] += a[i] b[j].
#define TAPER_ADD_MATRIX_PRODUCTS(sum, a, b) \
  __asm__("smmla %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b))
#endif
