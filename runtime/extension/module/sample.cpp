#include "taper/runtime/extension/module/sample.h"

#include "taper/runtime/program/format.h"

namespace taper {

uint64_t checksum_of_sample(Span<const std::byte> bytes, const Sample& sample, uint64_t h) {
  constexpr index_t page = 4096;
  const index_t end = sample.end_bytes, inner = bytes.size() - 2 * end;
  if (inner <= sample.pages * page) return checksum(bytes, h);
  h = checksum(bytes.part(0, end), h);
  const index_t step = inner / sample.pages / page * page;
  for (index_t i = 0; i < sample.pages; ++i) h = checksum(bytes.part(end + i * step, page), h);
  return checksum(bytes.part(bytes.size() - end, end), h);
}

}  // namespace taper
