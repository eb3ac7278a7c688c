#include "taper/delegates/xnnpack/app/pack_folder.h"

#include <cstdio>
#include <cstring>
#include <filesystem>

#include "taper/runtime/extension/module/new_file.h"

namespace taper::delegates::xnnpack {
namespace {

constexpr std::byte behind[bytes_behind_packed] = {};

std::string name_of(size_t count, uint64_t hash) {
  char name[64];
  std::snprintf(name, sizeof name, "%016llx-%llu.xnnpack", static_cast<unsigned long long>(hash),
                static_cast<unsigned long long>(count));
  return name;
}

// Maps the file if it holds these bytes and those behind them.
bool open_equal(MappedFile& file, const std::string& path, Span<const std::byte> bytes) {
  std::string unread;
  return file.open(path, unread) && file.is_mapped() &&
         file.bytes().size() == bytes.size() + static_cast<index_t>(bytes_behind_packed) &&
         std::memcmp(file.bytes().data(), bytes.data(), static_cast<size_t>(bytes.size())) == 0;
}

}  // namespace

const void* PackFolder::map(const void* bytes, size_t count, uint64_t hash) {
  const std::string path = (std::filesystem::path(folder_) / name_of(count, hash)).string();
  const Span<const std::byte> packed(static_cast<const std::byte*>(bytes),
                                     static_cast<index_t>(count));
  MappedFile file;
  if (!open_equal(file, path, packed)) {
    file = MappedFile();
    NewFile out(path);
    const bool is_written =
        out.write(0, bytes, count) && out.write(count, behind, sizeof behind) && out.finish();
    if (!is_written || !open_equal(file, path, packed)) return nullptr;
  }
  const void* there = file.bytes().data();
  const std::lock_guard<std::mutex> lock(mutex_);
  mapped_.emplace(there, std::move(file));
  return there;
}

void PackFolder::unmap(const void* bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  mapped_.erase(bytes);
}

}  // namespace taper::delegates::xnnpack
