// A tensor seen along one dimension.
#pragma once
#include "taper/kernels/portable/lanes.h"
#include "taper/runtime/core/tensor_ref.h"
#include "taper/runtime/platform/threads.h"

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

/// Calls body(0) … body(count - 1) in parallel, in tasks of about 4096 elements: each call takes
/// `width`.
template <class Body>
void parallel_lines(const Threads* threads, index_t count, index_t width, const Body& body) {
  const index_t per_task = pieces(4096, width > 0 ? width : 1);
  parallel_for(threads, pieces(count, per_task), [&](index_t task) {
    const index_t begin = task * per_task,
                  end = count - begin < per_task ? count : begin + per_task;
    for (index_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace taper::portable
