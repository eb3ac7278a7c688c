// The parts of a program that kernels never read: tests, and assets such as a tokenizer. They lie
// at the end of a file and can be cut off.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "taper/exporter/io/asset.h"
#include "taper/exporter/io/bundled_test.h"

namespace taper::emit {

struct Extras {
  const std::vector<io::BundledTest>& tests;
  const std::vector<io::Asset>& assets;

  bool empty() const { return tests.empty() && assets.empty(); }
};

/// The bytes outside of the table: the tensors of all tests, their inputs, then their outputs, test
/// after test; then the assets.
std::vector<std::span<const std::byte>> bytes_of(const Extras& extras);

/// The segment `extras`. Element i of `bytes_of(extras)` lies at offsets[i] in segment number
/// `segment` of the file.
std::vector<std::byte> extras_table(const Extras& extras, uint32_t segment,
                                    const std::vector<uint64_t>& offsets);

}  // namespace taper::emit
