// The tensors of a safetensors file where they lie, for files that are mapped.
#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "taper/runtime/core/dtype.h"

namespace taper::io {

/// A row-major tensor in the bytes of a file. The address may be any.
struct MappedTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> sizes;
  std::span<const std::byte> bytes;
};

struct SafeTensorsIndex {
  std::map<std::string, MappedTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Checks as read_safetensors does (io/safetensors.h), and copies nothing. Throws FileError.
SafeTensorsIndex index_safetensors(std::span<const std::byte> file, const std::string& name);

}  // namespace taper::io
