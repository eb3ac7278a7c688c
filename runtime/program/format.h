// The first bytes of a program, and its checksum. schema/program.fbs defines the rest.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "taper/runtime/core/span.h"

namespace taper {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "programs hold little-endian tensors that are used where they lie");

/// The version that this runtime reads and writes. It also reads the version before.
inline constexpr uint32_t format_version = 2;
inline constexpr uint32_t oldest_readable_version = 1;

/// Segments, buffers and states start at multiples of this.
inline constexpr size_t segment_alignment = 64;
/// Readable bytes behind every buffer, state and constant. Kernels may load them, but results must
/// not depend on them.
inline constexpr size_t slack_bytes = 64;
/// The alignment of a program's first byte.
inline constexpr size_t file_alignment = 16;

inline constexpr char file_magic[8] = {'T', 'A', 'P', 'E', 'R', '\r', '\n', '\x1a'};

/// The bytes at offset 0 of every program.
struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t flags;  ///< 0
  uint64_t metadata_offset, metadata_bytes, metadata_checksum;
  uint64_t file_bytes;
  uint64_t reserved[2];  ///< 0
};
static_assert(sizeof(FileHeader) == 64);

constexpr uint64_t checksum_of_nothing = 14695981039346656037ull;

/// FNV-1a over 64-bit words. Each word is also folded once, so that its high bits reach the low
/// ones. The last word is padded with zeros. `h` is the checksum of the bytes before, which must be
/// whole words.
inline uint64_t checksum(Span<const std::byte> bytes, uint64_t h = checksum_of_nothing) {
  const size_t n = static_cast<size_t>(bytes.size());
  for (size_t i = 0; i < n; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, n - i < 8 ? n - i : 8);
    h = (h ^ word) * 1099511628211ull;
    h ^= h >> 32;
  }
  return h;
}

}  // namespace taper
