// A tensor seen along one dimension.
#pragma once
#include "taper/runtime/core/tensor_ref.h"

namespace taper::portable {

/// A dense tensor as (outer, extent, inner): `extent` elements, `inner` apart, make a line. A
/// scalar is one line of one element.
struct Lines {
  index_t outer, extent, inner;
};

inline Lines lines_along(const Shape& shape, int64_t dim) {
  Lines lines{1, 1, 1};
  if (dim < 0) dim += shape.rank;
  for (int i = 0; i < shape.rank; ++i)
    (i < dim ? lines.outer : i == dim ? lines.extent : lines.inner) *= shape.sizes[i];
  return lines;
}

}  // namespace taper::portable
