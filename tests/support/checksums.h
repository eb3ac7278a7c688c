// Damage that a checksum would find first.
#pragma once
#include <cstddef>
#include <cstring>
#include <vector>

#include "taper/runtime/program/format.h"
#include "taper/schema/program_generated.h"

namespace taper::tests {

/// Makes the checksums of a changed program right again, as who attacks a reader would.
inline void write_checksums(std::vector<std::byte>& program) {
  const auto checksum_of = [&](uint64_t offset, uint64_t size) {
    return checksum({program.data() + offset, static_cast<index_t>(size)});
  };
  FileHeader h;
  std::memcpy(&h, program.data(), sizeof h);
  for (const format::Segment* s :
       *format::GetProgram(program.data() + h.metadata_offset)->segments())
    *const_cast<format::Segment*>(s) = {s->offset(), s->size_bytes(),
                                        checksum_of(s->offset(), s->size_bytes()), s->kind()};
  h.metadata_checksum = checksum_of(h.metadata_offset, h.metadata_bytes);
  std::memcpy(program.data(), &h, sizeof h);
}

}  // namespace taper::tests
