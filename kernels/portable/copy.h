// Copies between strided tensors, and casts: what all kernels that move data are made of.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/walk.h"

namespace taper::portable {

/// Writes the elements of `from`, `count` of them in the order of its walk, to the walk `to`
/// through memory at `data`, converting them to `dtype`. In parallel; the memory written must not
/// overlap the memory read, unless it is exactly it.
void copy_elements(const Threads* threads, const TensorRef& from, const Walk& from_walk, void* data,
                   DType dtype, const Walk& to, index_t count);

}  // namespace taper::portable
