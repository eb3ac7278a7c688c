#include "taper/runtime/extension/module/pack_store.h"

#include <cstdio>
#include <cstring>
#include <filesystem>

#include "taper/runtime/extension/module/whole_file.h"
#include "taper/runtime/packing/packing.h"
#include "taper/runtime/program/tables.h"

namespace taper {
namespace {

// Offset 0 of a file of the store; the packed constants follow.
struct StoreHeader {
  char magic[8];
  uint64_t version;
  uint64_t bytes;     // that follow
  uint64_t checksum;  // over them
  uint64_t packing;   // the version of the code that packed
  uint64_t reserved[3];
};
static_assert(sizeof(StoreHeader) == segment_alignment);

constexpr char store_magic[8] = {'T', 'A', 'P', 'R', 'P', 'A', 'C', 'K'};
constexpr uint64_t store_version = 2;
// A hash of the sources that pack: another build may lay out bytes in another way.
constexpr uint64_t packing_version = TAPER_PACKING_VERSION;

StoreHeader header_of(Span<const std::byte> bytes) {
  StoreHeader h{};
  std::memcpy(h.magic, store_magic, sizeof h.magic);
  h.version = store_version;
  h.bytes = static_cast<uint64_t>(bytes.size());
  h.checksum = checksum(bytes);
  h.packing = packing_version;
  return h;
}
Span<const std::byte> bytes_of(const StoreHeader& header) {
  return {reinterpret_cast<const std::byte*>(&header), sizeof header};
}

}  // namespace

Span<const std::byte> PackedWeights::bytes() const {
  if (region) return static_cast<Span<std::byte>>(*region);
  const index_t header = sizeof(StoreHeader);
  return file.bytes().part(header, file.bytes().size() - header);
}

bool PackedWeights::open(const std::string& path, const Program& program,
                         Span<std::byte> workspace) {
  MappedFile stored;
  std::string unread;
  if (!stored.open(path, unread) ||
      static_cast<size_t>(stored.bytes().size()) < sizeof(StoreHeader))
    return false;
  file = std::move(stored);
  const StoreHeader expected = header_of(bytes());
  if (std::memcmp(file.bytes().data(), &expected, sizeof expected) == 0 &&
      holds_packed(program, workspace, bytes()))
    return true;
  file = MappedFile();
  return false;
}

void PackedWeights::save(const std::string& path) const {
  const StoreHeader header = header_of(bytes());
  (void)write_whole_file(path, {bytes_of(header), bytes()});
}

std::string path_in_store(const std::string& folder, const Program& program) {
  for (const format::Segment& s : internal::span_of(program.table().segments()))
    if (s.kind() == format::SegmentKind::constants && s.checksum() == 0) return "";
  char name[64];
  std::snprintf(name, sizeof name, "%016llx-%016llx.packed",
                static_cast<unsigned long long>(internal::packing_key(program.data())),
                static_cast<unsigned long long>(packing_version));
  return (std::filesystem::path(folder) / name).string();
}

}  // namespace taper
