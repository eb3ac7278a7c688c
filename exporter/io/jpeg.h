// JPEG pictures, through libjpeg-turbo. Built without it, both functions throw FileError and say
// so.
#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "taper/exporter/io/file.h"

namespace taper::io {

/// A picture as u8 (height, width, 3) in RGB, the top row first; greys become RGB. No orientation
/// or colour profile is applied. Throws FileError for damaged files and for more than 2^28 samples.
Array read_jpeg(const std::filesystem::path& path);
Array parse_jpeg(std::span<const std::byte> file, const std::string& name);

}  // namespace taper::io
