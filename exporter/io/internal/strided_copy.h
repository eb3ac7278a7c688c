#pragma once
#include <cstring>
#include <span>
#include <vector>

#include "taper/exporter/io/array.h"

namespace taper::io::internal {

/// Fills the row-major `out` from `in`, whose element (i, j, …) stands at element `at` + i *
/// strides[0] + j * strides[1] + ….
inline void copy_strided(const std::byte* in, int64_t at, std::span<const int64_t> strides,
                         const Array& out) {
  const size_t item = static_cast<size_t>(size_bytes(out.dtype));
  std::vector<int64_t> index(strides.size(), 0);
  std::byte* to = out.bytes.get();
  for (int64_t n = out.numel(); n > 0; --n, to += item) {
    std::memcpy(to, in + static_cast<size_t>(at) * item, item);
    for (size_t d = strides.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < out.sizes[d]) break;
      at -= strides[d] * out.sizes[d];
      index[d] = 0;
    }
  }
}

}  // namespace taper::io::internal
