#pragma once
#include <cstddef>

#include "taper/runtime/core/tensor_ref.h"

namespace taper {

/// Copies the elements of a tensor of any strides to `to`, in row-major order: `from.size_bytes()`
/// bytes, which must not overlap those of `from`.
void copy_dense(const TensorRef& from, std::byte* to);

}  // namespace taper
