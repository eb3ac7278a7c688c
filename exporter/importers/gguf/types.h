// The types of tensors in GGUF files. Names and numbers: ggml's enum ggml_type.
#pragma once
#include <cstdint>
#include <string>

#include "taper/runtime/core/layout.h"

namespace taper::gguf {

/// Elements are stored in blocks: `block` elements of a row take `bytes` bytes.
struct TensorType {
  uint32_t id;
  const char* name;  ///< "Q4_0"
  int64_t block, bytes;
  Layout layout = Layout::dense;  ///< of f32 in these blocks; dense: it is none of blocks
};

inline constexpr uint32_t f32_id = 0, f16_id = 1, bf16_id = 30;

/// nullptr: there is no type with this number.
const TensorType* find_type(uint32_t id);
/// "Q4_0", or "type 99".
std::string type_name(uint32_t id);

}  // namespace taper::gguf
