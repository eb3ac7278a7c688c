#pragma once
#include <array>
#include <cstddef>

#include "taper/runtime/core/span.h"

namespace taper {

/// SHA-256 as FIPS 180-4 defines it: what programs name constants of other files by.
std::array<std::byte, 32> sha256(Span<const std::byte> bytes);

}  // namespace taper
