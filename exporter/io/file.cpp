#include "taper/exporter/io/file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <system_error>

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

// A file beside `path` that nobody else writes.
std::filesystem::path unique_neighbour(const std::filesystem::path& path) {
  std::filesystem::path neighbour = path;
  return neighbour += "." + std::to_string(std::random_device{}()) + ".partial";
}

struct Content {
  size_t head_bytes;
  const std::function<Bytes()>& head;
  std::span<const std::span<const std::byte>> pieces;
};

// What cannot be written is reported as `name`. A device or a pipe takes its bytes in order.
void write_straight(const std::filesystem::path& path, const Content& content, bool in_order,
                    const std::filesystem::path& name) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) throw failure(name, "cannot create");
  const auto write = [&](std::span<const std::byte> bytes) {
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  };
  if (in_order)
    write(content.head());
  else
    out.seekp(static_cast<std::streamoff>(content.head_bytes));
  for (const std::span<const std::byte> bytes : content.pieces) write(bytes);
  if (!in_order) {
    out.seekp(0);
    write(content.head());
  }
  out.close();
  if (!out) throw failure(name, "cannot write");
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
  write_file(path, std::span(&bytes, 1));
}

void write_file(const std::filesystem::path& path,
                std::span<const std::span<const std::byte>> pieces) {
  write_file(
      path, 0, [] { return Bytes(); }, pieces);
}

void write_file(const std::filesystem::path& path, size_t head_bytes,
                const std::function<Bytes()>& head,
                std::span<const std::span<const std::byte>> pieces) {
  const Content content{head_bytes, head, pieces};
  const std::filesystem::path target = end_of_links(path);
  std::error_code error;
  const std::filesystem::file_status before = std::filesystem::status(target, error);
  // A device, a pipe or a folder cannot be replaced.
  if (std::filesystem::exists(before) && !std::filesystem::is_regular_file(before))
    return write_straight(target, content, true, path);

  const std::filesystem::path partial = unique_neighbour(target);
  std::error_code ignored;
  try {
    write_straight(partial, content, false, path);
  } catch (...) {
    std::filesystem::remove(partial, ignored);
    throw;
  }
  if (std::filesystem::exists(before))
    std::filesystem::permissions(partial, before.permissions(), ignored);
  std::filesystem::rename(partial, target, error);
  if (!error) return;
  std::filesystem::remove(partial, ignored);
  throw FileError(path.string() + ": cannot replace: " + error.message());
}

}  // namespace taper::io
