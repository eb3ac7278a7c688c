// gzip, through zlib. Built without zlib, `gunzip` throws FileError and says so.
#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "taper/exporter/io/file.h"

namespace taper::io {

/// Expands a gzip stream (RFC 1952, also several members behind each other). Throws FileError if it
/// is damaged, cut short, or expands to more than `limit` bytes. `name` stands in front of
/// messages.
Bytes gunzip(std::span<const std::byte> stream, const std::string& name,
             size_t limit = size_t{1} << 31);

/// The file's bytes, expanded if it is a gzip file (its first two bytes say so).
inline Bytes read_file_or_gzip(const std::filesystem::path& path) {
  Bytes bytes = read_file(path);
  const bool gzip = bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
  return gzip ? gunzip(bytes, path.string()) : bytes;
}

}  // namespace taper::io
