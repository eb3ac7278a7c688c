// PNG pictures, through libpng. Built without libpng, both functions throw FileError and say so.
#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "taper/exporter/io/file.h"

namespace taper::io {

/// True if this build reads and writes PNG.
bool has_png();

/// A picture as u8 (height, width, channels), the top row first. channels: 1 grey, 2 grey and
/// alpha, 3 RGB, 4 RGBA, as the file has them; palettes become RGB (or RGBA), 1, 2 and 4 bit greys
/// and 16 bit samples become 8 bit. Sample values are taken as they are: no gamma or colour profile
/// is applied. Throws FileError for damaged files and for more than 2^28 samples.
Array read_png(const std::filesystem::path& path);
Array parse_png(std::span<const std::byte> file, const std::string& name);

/// Writes u8 (height, width, channels) with 1 to 4 channels, or (height, width) as grey.
void write_png(const std::filesystem::path& path, const Array& picture);

}  // namespace taper::io
