#pragma once
#include <cstddef>
#include <cstring>

#include "taper/runtime/core/tensor_ref.h"

namespace taper {

/// Copies the elements of a tensor with any strides to `to`, in row-major order. `to` has
/// `from.size_bytes()` bytes, which must not overlap those of `from`.
inline void copy_dense(const TensorRef& from, std::byte* to) {
  const size_t element = static_cast<size_t>(size_bytes(from.dtype));
  const Shape& s = *from.shape;
  const index_t n = s.numel();
  if (n == 0) return;
  if (s.is_dense()) {
    std::memcpy(to, from.data, static_cast<size_t>(n) * element);
    return;
  }
  const std::byte* const data = static_cast<const std::byte*>(from.data);
  index_t at[max_rank] = {}, offset = 0;
  for (index_t i = 0; i < n; ++i, to += element) {
    std::memcpy(to, data + offset * static_cast<index_t>(element),
                element);  // strides may be negative
    for (int d = s.rank - 1; d >= 0; --d) {
      offset += s.strides[d];
      if (++at[d] < s.sizes[d]) break;
      offset -= s.strides[d] * s.sizes[d];
      at[d] = 0;
    }
  }
}

}  // namespace taper
