// A tensor as it lies in a file.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "taper/exporter/io/array.h"

namespace taper::io {

/// A strided view of a storage's bytes, which belong to the file. Element (i, j, …) stands at
/// element `offset` + i * strides[0] + j * strides[1] + ….
struct StoredTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
  std::span<const std::byte> storage;

  /// Row-major from the offset on.
  bool is_dense() const;
  /// Whether every element lies inside the storage, and none of sizes, strides and offset is
  /// negative or too large to count. "" if so, else what is wrong: "it reaches element 12 of a
  /// storage of 10".
  std::string check() const;
  /// A row-major copy. Call it only if `check` finds nothing.
  Array to_array() const;
};

}  // namespace taper::io
