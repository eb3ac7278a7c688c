#pragma once
#include <cstdint>

#include "taper/runtime/core/span.h"

namespace taper {

/// What is read of a large piece of memory: both ends, and pages of 4096 bytes that lie evenly
/// between them.
struct Sample {
  index_t end_bytes;  ///< of each end; a multiple of 4096
  index_t pages;
};

/// A checksum that goes on from `h`: of all bytes, or of a sample of them if they are more than the
/// sample. A change of bytes outside the sample is not noticed.
uint64_t checksum_of_sample(Span<const std::byte> bytes, const Sample& sample, uint64_t h);

}  // namespace taper
