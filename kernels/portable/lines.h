// A tensor as lines along one dimension.
#pragma once
#include "taper/kernels/portable/lanes.h"
#include "taper/runtime/core/tensor_ref.h"
#include "taper/runtime/platform/threads.h"

namespace taper::portable {

/// A dense tensor as (outer, extent, inner). A line is `extent` elements that lie `inner` apart. A
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

/// Calls body(first, end) for ranges of `count` lines in parallel. A line has `width` elements; a
/// task has about 4096.
template <class Body>
void parallel_ranges(const Threads* threads, index_t count, index_t width, const Body& body) {
  const index_t per_task = pieces(4096, width > 0 ? width : 1);
  parallel_for(threads, pieces(count, per_task), [&](index_t task) {
    const index_t first = task * per_task;
    body(first, count - first < per_task ? count : first + per_task);
  });
}

/// Calls body(0) … body(count - 1), in the same tasks.
template <class Body>
void parallel_lines(const Threads* threads, index_t count, index_t width, const Body& body) {
  parallel_ranges(threads, count, width, [&](index_t first, index_t end) {
    for (index_t i = first; i < end; ++i) body(i);
  });
}

}  // namespace taper::portable
