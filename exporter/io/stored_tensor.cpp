#include "taper/exporter/io/stored_tensor.h"

#include "taper/exporter/io/internal/strided_copy.h"

namespace taper::io {

bool StoredTensor::is_dense() const {
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 0) return true;
    if (sizes[d] != 1 && strides[d] != stride) return false;
    stride *= sizes[d];
  }
  return true;
}

std::string StoredTensor::check() const {
  if (sizes.size() != strides.size())
    return "it has " + std::to_string(sizes.size()) + " sizes and " +
           std::to_string(strides.size()) + " strides";
  if (offset < 0) return "its offset is " + std::to_string(offset);
  const int64_t item = size_bytes(dtype), numel = checked_numel(sizes, item);
  if (numel < 0) return "its sizes are negative, or larger than any memory";
  int64_t last = offset;
  bool overflow = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (strides[d] < 0) return "a stride is " + std::to_string(strides[d]);
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(sizes[d] > 0 ? sizes[d] - 1 : 0, strides[d], &reach) ||
                __builtin_add_overflow(last, reach, &last);
  }
  const int64_t stored = static_cast<int64_t>(storage.size()) / item;
  if (numel > 0 && (overflow || last >= stored))
    return "it reaches " + (overflow ? "far" : "element " + std::to_string(last)) +
           " in a storage of " + std::to_string(stored) + " elements";
  return "";
}

Array StoredTensor::to_array() const {
  Array array = Array::zeros(dtype, sizes);
  internal::copy_strided(storage.data(), offset, strides, array);
  array.settle_bools();
  return array;
}

}  // namespace taper::io
