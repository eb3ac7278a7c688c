// Weights in blocks for tests: random bytes, whose scales are small numbers in every format.
#pragma once
#include <memory>
#include <random>
#include <vector>

#include "taper/exporter/ir/graph.h"

namespace taper::tests {

/// A payload of random blocks. Bytes below 0x2c are small as the upper half of an f16, wherever a
/// format has its scales.
inline std::shared_ptr<const ir::Payload> random_blocks(Layout layout, std::vector<int64_t> sizes,
                                                        uint32_t seed = 1) {
  size_t count = 1;
  for (const int64_t n : sizes) count *= static_cast<size_t>(n);
  const BlockSize block = block_of(layout);
  constexpr size_t slack = 64;
  const auto bytes =
      std::make_shared<std::vector<std::byte>>(count / block.elements * block.bytes + slack);
  std::mt19937 engine(seed);
  for (std::byte& b : *bytes) b = static_cast<std::byte>(engine() % 0x2c);
  return std::make_shared<const ir::Payload>(ir::Payload{
      DType::f32, std::move(sizes), std::shared_ptr<const std::byte>(bytes, bytes->data()),
      bytes->size() - slack, layout});
}

}  // namespace taper::tests
