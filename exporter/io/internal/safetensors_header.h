#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "taper/runtime/core/dtype.h"

namespace taper::io::internal {

/// What a safetensors header says of one tensor.
struct HeaderEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  ///< data_offsets
};

struct Header {
  std::vector<HeaderEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// Parses the JSON of a header; checks its form, not its numbers against each other. Throws
/// FileError. Memory in use is proportional to what the header describes, whatever its text is.
Header parse_header(std::string_view json, const std::string& file);

/// "F32"
std::string_view safetensors_name(DType dtype);

}  // namespace taper::io::internal
