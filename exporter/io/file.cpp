#include "taper/exporter/io/file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "taper/exporter/io/internal/new_file.h"

namespace taper::io {
namespace {

FileError failure(const std::filesystem::path& path, const char* what) {
  return FileError(path.string() + ": " + what + ": " + std::strerror(errno));
}

// Where a symbolic link leads to, which need not be there; another path as it is.
std::filesystem::path end_of_links(std::filesystem::path path) {
  constexpr int most_links = 40;
  std::error_code error;
  for (int i = 0; i < most_links && std::filesystem::is_symlink(path, error); ++i)
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  return path;
}

// A device or a pipe takes its bytes in order.
void write_in_order(const std::filesystem::path& path, const std::function<Bytes()>& head,
                    const std::function<void(const Sink&)>& rest) {
  rest([](std::span<const std::byte>) {});
  std::ofstream out(path, std::ios::binary);
  if (!out) throw failure(path, "cannot create");
  const auto write = [&](std::span<const std::byte> bytes) {
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  };
  write(head());
  rest(write);
  out.close();
  if (!out) throw failure(path, "cannot write");
}

}  // namespace

Bytes read_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status))
    throw FileError(path.string() + ": is a folder, not a file");
  // A pipe would be waited for, and a device has no size.
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw FileError(path.string() + ": is a pipe or a device, not a file");
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
  write_file(path, std::span(&bytes, 1));
}

void write_file(const std::filesystem::path& path,
                std::span<const std::span<const std::byte>> pieces) {
  write_file(
      path, 0, [] { return Bytes(); },
      [&](const Sink& take) { std::ranges::for_each(pieces, take); });
}

void write_file(const std::filesystem::path& path, size_t head_bytes,
                const std::function<Bytes()>& head, const std::function<void(const Sink&)>& rest) {
  std::error_code error;
  const std::filesystem::file_status before = std::filesystem::status(path, error);
  // A device, a pipe or a folder cannot be replaced.
  if (std::filesystem::exists(before) && !std::filesystem::is_regular_file(before))
    return write_in_order(path, head, rest);

  internal::NewFile file(end_of_links(path), path.string());
  uint64_t offset = head_bytes;
  rest([&](std::span<const std::byte> bytes) {
    file.write(offset, bytes);
    offset += bytes.size();
  });
  file.write(0, head());
  file.replace_target();
}

}  // namespace taper::io
