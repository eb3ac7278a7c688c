// Copies between strided tensors, and casts: the base of all kernels that move data.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/walk.h"

namespace taper::portable {

/// Writes the `count` elements of `from`, in the order of `from_walk`, through the walk `to` to
/// memory at `data`, and converts them to `dtype`. Works in parallel. The memory written must not
/// overlap the memory read, unless both are exactly the same.
void copy_elements(const Threads* threads, const TensorRef& from, const Walk& from_walk, void* data,
                   DType dtype, const Walk& to, index_t count);

}  // namespace taper::portable
