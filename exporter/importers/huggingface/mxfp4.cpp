// MXFP4 as gpt-oss has it: X_blocks u8 (…, out, in / 32, 16) and X_scales u8 (…, out, in / 32). OCP
// Microscaling Formats (MX) specification, version 1.0.
#include "taper/exporter/importers/huggingface/quantized_parts.h"

namespace taper::huggingface::internal {
namespace {

constexpr int64_t bytes_of_block = 16;

/// A byte holds the elements 2 j and 2 j + 1 there; here (docs/format.md) j and j + 16.
void pack(const std::byte* from, std::byte scale, std::byte* to) {
  const auto nibble = [&](int element) {
    return static_cast<unsigned>(from[element / 2]) >> element % 2 * 4 & 15;
  };
  to[0] = scale;
  for (int j = 0; j < bytes_of_block; ++j)
    to[1 + j] = static_cast<std::byte>(nibble(j) | nibble(j + 16) << 4);
}

Repacked repacked(const Tensor& blocks, const Tensor& scales) {
  const auto count = static_cast<int64_t>(scales.bytes.size());
  const Blocks to(Layout::mxfp4, count, 32);
  for (int64_t i = 0; i < count; ++i)
    pack(blocks.bytes.data() + i * bytes_of_block, scales.bytes[static_cast<size_t>(i)],
         to.at(i, 0));
  return to.finish();
}

}  // namespace

QuantizedWeights take_mxfp4(Tensors& tensors) {
  QuantizedWeights weights;
  for (const std::string& name : names_before(tensors, "_blocks")) {
    Parts parts(name, tensors);
    const size_t rank = tensors.at(name + "_blocks").sizes.size();
    const Tensor blocks = parts.take("_blocks", DType::u8, rank);
    const Tensor scales = parts.take("_scales", DType::u8, rank - 1);
    std::vector<int64_t> sizes = scales.sizes;
    sizes.push_back(bytes_of_block);
    parts.require(blocks.sizes == sizes && rank > 2,
                  "_blocks are not 16 bytes for each element of _scales");
    sizes.pop_back(), sizes.back() *= 32;
    weights[name + "_blocks"] = {sizes, [=] { return repacked(blocks, scales); }};
  }
  return weights;
}

}  // namespace taper::huggingface::internal
