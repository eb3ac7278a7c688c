// The parts of a program that only tools read. The runtime never reads them, and they can be cut
// off.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "taper/exporter/io/bundled_test.h"

namespace taper::emit {

/// The tensors of all tests: their inputs, then their outputs, test after test.
std::vector<const io::Array*> tensors_of(const std::vector<io::BundledTest>& tests);

/// The segment `extras`. The elements of tensor i of `tensors_of(tests)` lie at offsets[i] in
/// segment number `assets` of the file.
std::vector<std::byte> extras_table(const std::vector<io::BundledTest>& tests, uint32_t assets,
                                    const std::vector<uint64_t>& offsets);

}  // namespace taper::emit
