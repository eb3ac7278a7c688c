// Whole files in and out of memory.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "taper/exporter/io/array.h"

namespace taper::io {

using Bytes = std::vector<std::byte>;

/// The file's bytes. Throws FileError: "weights.npy: cannot open: No such file or directory".
Bytes read_file(const std::filesystem::path& path);

/// Writes beside the target and renames, so that a reader never sees half a file and a failure
/// leaves the old one.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace taper::io
