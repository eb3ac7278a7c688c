#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "taper/runtime/core/layout.h"
#include "taper/runtime/core/span.h"
#include "taper/runtime/extension/module/mapped_file.h"

namespace taper {

/// Where an external constant lies in a file of another kind, such as a .gguf or a .safetensors. A
/// program has this as the constant's key, in place of the SHA-256 that identifies a constant of a
/// weights file.
struct PlaceInFile {
  uint64_t file = 0;    ///< its fingerprint
  uint64_t offset = 0;  ///< of the constant's first byte
  Layout layout = Layout::dense;

  using Key = std::array<std::byte, 32>;
  Key key() const;
  /// nullopt: the key is a SHA-256, or of a layout that is unknown here.
  static std::optional<PlaceInFile> from(Span<const std::byte> key);
};

/// Tells a mapped file from others and from what it was before: its size, the time of the last
/// write, both ends, and some pages between them. The file's name and folder do not count.
uint64_t fingerprint(const MappedFile& file);

}  // namespace taper
