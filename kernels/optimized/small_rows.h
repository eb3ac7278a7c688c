// A driver's loops at a level that read and write small floats through its conversions.
#pragma once
#include "taper/kernels/optimized/small_floats.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {

/// The Store (walk.h) of a small float at a level.
template <class E, CpuLevel level>
void store_small(const void* from, index_t n, void* to) {
  constexpr DType dtype = std::is_same_v<E, Half> ? DType::f16 : DType::bf16;
  narrow_small<level>(dtype, n, static_cast<const float*>(from), to);
}

template <CpuLevel level>
struct SmallRowLoopsAt : SmallLoopsAt<level> {
  static portable::Store storer(DType from, DType to) {
    if (from == DType::f32 && to == DType::f16) return store_small<Half, level>;
    if (from == DType::f32 && to == DType::bf16) return store_small<BFloat16, level>;
    return portable::storer(from, to);
  }
};

}  // namespace taper::optimized
#endif
