// One element of an array, whatever its dtype, for printing and comparing.
#pragma once
#include <cstdint>

#include "taper/exporter/io/array.h"

namespace taper::io {

/// The `i`-th element, row by row, 0 ≤ i < numel(). i64 beyond 2^53 is rounded; bool is 0 or 1.
double element(const Array& array, int64_t i);

/// The largest magnitude of all finite elements; 0 if there is none.
double largest_magnitude(const Array& array);

}  // namespace taper::io
