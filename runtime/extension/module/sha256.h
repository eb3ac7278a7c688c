#pragma once
#include <array>
#include <cstddef>

#include "taper/runtime/core/span.h"

namespace taper {

/// SHA-256, as FIPS 180-4 defines it. Programs name constants of other files by it.
std::array<std::byte, 32> sha256(Span<const std::byte> bytes);

}  // namespace taper
