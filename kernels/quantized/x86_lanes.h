// Vectors of one x86 instruction set for block_tiles-inl.h.
#pragma once
#if defined(__x86_64__) && defined(__GNUC__)
#define TAPER_BLOCK_TILES_X86 1
#include <immintrin.h>

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
#else
#define TAPER_BLOCK_TILES_X86 0
#endif
