#include "taper/exporter/quantize/in_blocks.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/quantize/fit.h"

namespace taper::quantize {

using eager::Tensor;

namespace {

constexpr size_t readable_behind = 64;  // Tensor::stored

const BlockFormat& format_named(const std::string& name) {
  if (const BlockFormat* format = find_format(name)) return *format;
  std::string names;
  for (const char* n : format_names()) names += (names.empty() ? "" : ", ") + std::string(n);
  throw ExportError("weights cannot be written in the format " + name + "; there are " + names);
}

}  // namespace

Tensor in_blocks(const Tensor& matrix, const std::string& name) {
  const BlockFormat& format = format_named(name);
  const int64_t depth = matrix.size(-1).value();
  if (is_in_blocks(matrix.layout()) || matrix.rank() != 2 || depth % format.elements != 0)
    return matrix;
  const Tensor dense = matrix.to(DType::f32).contiguous();
  const auto rows = static_cast<size_t>(dense.size(0).value()),
             elements = static_cast<size_t>(format.elements),
             of_row = static_cast<size_t>(depth) / elements;
  const auto bytes_of_block = static_cast<size_t>(format.bytes);
  const std::span<const float> all(dense.data<float>(), rows * static_cast<size_t>(depth));
  if (!std::ranges::all_of(all, [](float x) { return std::isfinite(x); }))
    throw ExportError("a weight has elements that are not finite; it cannot be in blocks");
  const auto bytes =
      std::make_shared<std::vector<std::byte>>(rows * of_row * bytes_of_block + readable_behind);
  for (size_t i = 0; i < rows * of_row; ++i) {
    std::byte* block = bytes->data() + i * bytes_of_block;
    const std::span<const float> w = all.subspan(i * elements, elements);
    fit_block(format, Fit::mse, w, {}, block);
    round_block(format, w, block);
  }
  return Tensor::stored(bytes->data(), format.layout, {static_cast<int64_t>(rows), depth}, bytes);
}

}  // namespace taper::quantize
