#pragma once
#include <optional>
#include <string>

#include "taper/runtime/extension/module/mapped_file.h"
#include "taper/runtime/extension/module/region.h"
#include "taper/runtime/program/program.h"

namespace taper {

/// Packed constants in memory of their own, or in a file of a pack store, mapped.
struct PackedWeights {
  std::optional<Region> region;
  MappedFile file;

  /// What LoadOptions::packed takes.
  Span<const std::byte> bytes() const;

  /// Takes the store's file for a program, if it is there and whole and holds what `pack` would
  /// write. `workspace`: as find_packed left it.
  bool open(const std::string& path, const Program& program, Span<std::byte> workspace);
  /// Writes the region to the store. Others see the whole file or none. A store that cannot be
  /// written is left as it is: the next load packs again.
  void save(const std::string& path) const;
};

/// The file for a program in the folder of a store. It is named by the program's metadata, with the
/// checksums of its weights, by its kernels, and so by the processor's features, and by the version
/// of the code that packs. Empty: the
/// program's weights have no checksum, so others could take their place.
std::string path_in_store(const std::string& folder, const Program& program);

}  // namespace taper
