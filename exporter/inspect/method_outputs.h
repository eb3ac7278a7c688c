// The results of a method's run, as arrays.
#pragma once
#include <vector>

#include "taper/exporter/io/array.h"
#include "taper/runtime/method/method.h"

namespace taper::inspect {

/// The elements in row-major order, copied.
io::Array array_of(const TensorRef& tensor);

/// Every output of the last run, in order. A number is an array without extents.
std::vector<io::Array> read_outputs(const Method& method);

}  // namespace taper::inspect
