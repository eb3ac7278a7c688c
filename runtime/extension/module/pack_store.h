#pragma once
#include <optional>
#include <string>

#include "taper/runtime/extension/module/mapped_file.h"
#include "taper/runtime/extension/module/region.h"
#include "taper/runtime/packing/packing.h"

namespace taper {

/// Packed constants, in memory of their own or in a mapped file of a pack store.
struct PackedWeights {
  std::optional<Region> region;
  MappedFile file;

  /// The bytes for LoadOptions::packed.
  Span<const std::byte> bytes() const;

  /// Opens the store's file for a program, if it exists, is whole, and holds the bytes that `pack`
  /// would write. `workspace` is as find_packed left it.
  bool open(const std::string& path, const Program& program, Span<std::byte> workspace,
            const Threads* threads);
  /// Packs into a new file of the store, and maps it: the weights are not in memory a second time.
  /// Others see the whole file or none. False: the store cannot be written.
  bool create(const std::string& path, const Program& program, Span<std::byte> workspace,
              size_t bytes, PackOptions options);
};

/// The file for a program in the folder of a store. Its name depends on the program's metadata with
/// the checksums of its weights, on its kernels and so on the processor's features, and on the
/// version of the code that packs. Empty: the program's weights have no checksum, so other weights
/// could take their place.
std::string path_in_store(const std::string& folder, const Program& program);

}  // namespace taper
