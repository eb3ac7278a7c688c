// Parts of f32 that the library can compute in f16.
#pragma once
#include <cstdint>

namespace taper::delegates::xnnpack {

class Part;

/// What parts of f32 compute in. Their operands and results are f32 with both.
enum class Precision : uint8_t { f32, f16 };

/// Whether the library computes all nodes of the part in f16, on processors that have it.
bool fits_f16(const Part& part);

}  // namespace taper::delegates::xnnpack
