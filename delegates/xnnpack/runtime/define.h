// Hands a verified part to the library.
#pragma once
#include <xnnpack.h>

#include "taper/delegates/xnnpack/runtime/part.h"

namespace taper::delegates::xnnpack {

/// Defines the values and nodes of a part. `shapes` has the sizes of each value, for which `infer`
/// found no fault. `constants` has the elements of each constant, which must outlive the subgraph
/// and its runtimes. Values keep their numbers.
xnn_status define(xnn_subgraph_t subgraph, const Part& part, const Shape* shapes,
                  const void* const* constants);

/// The sizes of a shape, as the library counts them.
struct Dims {
  explicit Dims(const Shape& shape) : count(static_cast<size_t>(shape.rank)) {
    for (size_t i = 0; i < count; ++i) sizes[i] = static_cast<size_t>(shape.sizes[i]);
  }
  size_t count;
  size_t sizes[max_rank];
};

}  // namespace taper::delegates::xnnpack
