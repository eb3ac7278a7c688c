#include "taper/runtime/extension/module/place_in_file.h"

#include <cstring>

#include "taper/runtime/extension/module/sample.h"
#include "taper/runtime/program/format.h"

namespace taper {
namespace {

// Stored in programs.
struct StoredPlace {
  char mark[8];
  uint64_t file, offset, layout;
};
static_assert(sizeof(StoredPlace) == sizeof(PlaceInFile::Key));
constexpr char place_mark[8] = {'P', 'L', 'A', 'C', 'E', '\r', '\n', '\x1a'};

}  // namespace

PlaceInFile::Key PlaceInFile::key() const {
  StoredPlace stored{{}, file, offset, static_cast<uint64_t>(layout)};
  std::memcpy(stored.mark, place_mark, sizeof place_mark);
  Key key;
  std::memcpy(key.data(), &stored, sizeof stored);
  return key;
}

std::optional<PlaceInFile> PlaceInFile::from(Span<const std::byte> key) {
  StoredPlace stored;
  if (static_cast<size_t>(key.size()) != sizeof stored) return std::nullopt;
  std::memcpy(&stored, key.data(), sizeof stored);
  if (std::memcmp(stored.mark, place_mark, sizeof place_mark) != 0 || stored.layout >= layout_count)
    return std::nullopt;
  return PlaceInFile{stored.file, stored.offset, static_cast<Layout>(stored.layout)};
}

uint64_t fingerprint(const MappedFile& file) {
  const MappedFile::Identity& id = file.identity();
  const uint64_t size_and_time[] = {id[2], id[3], id[4]};
  const uint64_t h = checksum({reinterpret_cast<const std::byte*>(size_and_time),
                               static_cast<index_t>(sizeof size_and_time)});
  return checksum_of_sample(file.bytes(), {65536, 64}, h);
}

}  // namespace taper
