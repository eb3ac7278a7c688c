#include "taper/exporter/inspect/method_outputs.h"

#include <span>

#include "taper/exporter/io/internal/strided_copy.h"

namespace taper::inspect {

io::Array array_of(const TensorRef& tensor) {
  const Shape& s = *tensor.shape;
  io::Array array = io::Array::zeros(tensor.dtype, {s.sizes, s.sizes + s.rank});
  const std::vector<int64_t> strides(s.strides, s.strides + s.rank);
  io::internal::copy_strided(static_cast<const std::byte*>(tensor.data), 0, strides, array);
  return array;
}

std::vector<io::Array> read_outputs(const Method& method) {
  std::vector<io::Array> arrays;
  for (index_t i = 0; i < method.output_count(); ++i) {
    int64_t integer = 0;
    double real = 0;
    if (const TensorRef tensor = method.output(i); tensor.shape != nullptr)
      arrays.push_back(array_of(tensor));
    else if (method.output_number(i, integer) == Error::ok)
      arrays.push_back(io::Array::of<int64_t>({}, std::span<const int64_t>(&integer, 1)));
    else if (method.output_number(i, real) == Error::ok)
      arrays.push_back(io::Array::of<double>({}, std::span<const double>(&real, 1)));
  }
  return arrays;
}

}  // namespace taper::inspect
