#include "taper/exporter/io/file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace taper::io {
namespace {

FileError failure(const std::filesystem::path& path, const char* what) {
  return FileError(path.string() + ": " + what + ": " + std::strerror(errno));
}

}  // namespace

Bytes read_file(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw FileError(path.string() + ": is a folder, not a file");
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) throw failure(path, "cannot open");
  const std::streamoff size = in.tellg();
  Bytes bytes(size > 0 ? static_cast<size_t>(size) : 0);
  in.seekg(0);
  if (!bytes.empty() && !in.read(reinterpret_cast<char*>(bytes.data()), size))
    throw failure(path, "cannot read");
  return bytes;
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::filesystem::path partial = path;
  partial += ".partial";
  {
    std::ofstream out(partial, std::ios::binary | std::ios::trunc);
    if (!out) throw failure(path, "cannot create");
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) {
      const FileError error = failure(path, "cannot write");
      std::error_code ignored;
      std::filesystem::remove(partial, ignored);
      throw error;
    }
  }
  std::error_code error;
  std::filesystem::rename(partial, path, error);
  if (error) throw FileError(path.string() + ": cannot replace: " + error.message());
}

}  // namespace taper::io
