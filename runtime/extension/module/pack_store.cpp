#include "taper/runtime/extension/module/pack_store.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "taper/runtime/extension/module/new_file.h"
#include "taper/runtime/packing/packing.h"
#include "taper/runtime/program/tables.h"

namespace taper {
namespace {

// Offset 0 of a file of the store; the packed constants follow.
struct StoreHeader {
  char magic[8];
  uint64_t version;
  uint64_t bytes;     // that follow
  uint64_t checksum;  // over them, of parts
  uint64_t packing;   // the version of the code that packed
  uint64_t reserved[3];
};
static_assert(sizeof(StoreHeader) == segment_alignment);

constexpr char store_magic[8] = {'T', 'A', 'P', 'R', 'P', 'A', 'C', 'K'};
constexpr uint64_t store_version = 3;
// A hash of the sources that pack: another build may lay out bytes in another way.
constexpr uint64_t packing_version = TAPER_PACKING_VERSION;

// Reads about as fast as the memory: eight sums of words go on side by side. Threads share parts of
// a fixed size.
uint64_t wide_checksum(Span<const std::byte> bytes) {
  constexpr int lanes = 8;
  constexpr index_t step = lanes * sizeof(uint64_t);
  uint64_t h[lanes], words[lanes];
  for (int i = 0; i < lanes; ++i) h[i] = checksum_of_nothing + static_cast<uint64_t>(i);
  index_t at = 0;
  for (; at + step <= bytes.size(); at += step) {
    std::memcpy(words, bytes.data() + at, sizeof words);
    for (int i = 0; i < lanes; ++i) {
      h[i] = (h[i] ^ words[i]) * 1099511628211ull;
      h[i] ^= h[i] >> 32;
    }
  }
  const uint64_t rest = checksum(bytes.part(at, bytes.size() - at));
  return checksum({reinterpret_cast<const std::byte*>(h), static_cast<index_t>(sizeof h)}, rest);
}
uint64_t checksum_of_parts(Span<const std::byte> bytes, const Threads* threads) {
  constexpr index_t part = 4 << 20;
  std::vector<uint64_t> sums(static_cast<size_t>((bytes.size() + part - 1) / part));
  parallel_for(threads, static_cast<index_t>(sums.size()), [&](index_t i) {
    const index_t left = bytes.size() - i * part;
    sums[static_cast<size_t>(i)] = wide_checksum(bytes.part(i * part, left < part ? left : part));
  });
  return checksum({reinterpret_cast<const std::byte*>(sums.data()),
                   static_cast<index_t>(sums.size() * sizeof(uint64_t))});
}

StoreHeader header_of(Span<const std::byte> bytes, const Threads* threads) {
  StoreHeader h{};
  std::memcpy(h.magic, store_magic, sizeof h.magic);
  h.version = store_version;
  h.bytes = static_cast<uint64_t>(bytes.size());
  h.checksum = checksum_of_parts(bytes, threads);
  h.packing = packing_version;
  return h;
}

// A file of the store, and memory for what is written to it.
class NewStoreFile : public NewFile {
 public:
  using NewFile::NewFile;
  // Memory of this thread, which is used again for the next piece. nullptr: there is none.
  std::byte* memory(size_t bytes) {
    const std::lock_guard lock(mutex_);
    std::optional<Region>& own = memory_[std::this_thread::get_id()];
    if (!own || static_cast<size_t>(static_cast<Span<std::byte>>(*own).size()) < bytes)
      own.emplace(bytes);
    return own->is_there() ? static_cast<Span<std::byte>>(*own).data() : nullptr;
  }

 private:
  std::mutex mutex_;
  std::map<std::thread::id, std::optional<Region>> memory_;
};

}  // namespace

Span<const std::byte> PackedWeights::bytes() const {
  if (region) return static_cast<Span<std::byte>>(*region);
  const index_t header = sizeof(StoreHeader);
  return file.bytes().part(header, file.bytes().size() - header);
}

bool PackedWeights::open(const std::string& path, const Program& program, Span<std::byte> workspace,
                         const Threads* threads) {
  MappedFile stored;
  std::string unread;
  if (!stored.open(path, unread) ||
      static_cast<size_t>(stored.bytes().size()) < sizeof(StoreHeader))
    return false;
  file = std::move(stored);
  const StoreHeader expected = header_of(bytes(), threads);
  if (std::memcmp(file.bytes().data(), &expected, sizeof expected) == 0 &&
      holds_packed(program, workspace, bytes()))
    return true;
  file = MappedFile();
  return false;
}

bool PackedWeights::create(const std::string& path, const Program& program,
                           Span<std::byte> workspace, size_t bytes, PackOptions options) {
  NewStoreFile out(path);
  const Region table(packed_table_bytes(program));
  PackedPieces pieces;
  pieces.user = &out;
  pieces.memory = [](void* user, size_t size) {
    return static_cast<NewStoreFile*>(user)->memory(size);
  };
  pieces.write = [](void* user, size_t place, Span<const std::byte> piece) {
    return static_cast<NewStoreFile*>(user)->write(sizeof(StoreHeader) + place, piece.data(),
                                                   static_cast<size_t>(piece.size()));
  };
  options.pieces = &pieces;
  const std::byte end{0};
  MappedFile written;
  std::string unread;
  if (!table.is_there() || !out.write(sizeof(StoreHeader) + bytes - 1, &end, 1) ||
      pack(program, workspace, table, options) != Error::ok || !out.flush() ||
      !written.open(out.partial(), unread))
    return false;
  file = std::move(written);
  const StoreHeader header = header_of(this->bytes(), options.threads);
  if (out.write(0, &header, sizeof header) && out.finish()) return true;
  file = MappedFile();
  return false;
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
