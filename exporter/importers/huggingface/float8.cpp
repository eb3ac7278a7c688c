// Weights in f8_e4m3fn: X.weight (out, in), and a factor for each tile of it. DeepSeek and Qwen
// call the factors X.weight_scale_inv, others X.weight_scale. They become bf16, as the authors' own
// scripts make them.
#include "taper/kernels/float8.h"

#include "taper/exporter/importers/huggingface/quantized_parts.h"

namespace taper::huggingface::internal {
namespace {

struct Tiles {
  Tensor weight, scale;
  int64_t height, width;  ///< of a tile

  float factor(int64_t row, int64_t column) const {
    const int64_t columns = (weight.sizes[1] + width - 1) / width;
    return number(scale, row / height * columns + column / width);
  }
};

Repacked widened(const Tiles& t) {
  const int64_t rows = t.weight.sizes[0], columns = t.weight.sizes[1];
  const auto bytes = allocate(static_cast<size_t>(rows * columns) * sizeof(BFloat16));
  auto* to = reinterpret_cast<BFloat16*>(bytes.get());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t first = 0; first < columns; first += t.width) {
      const float factor = t.factor(i, first);
      for (int64_t j = first; j < std::min(columns, first + t.width); ++j)
        to[i * columns + j] =
            BFloat16(factor * static_cast<float>(element<Float8E4M3>(t.weight, i * columns + j)));
    }
  return {DType::bf16, Layout::dense, bytes};
}

/// The extent of tiles of which `count` cover `extent`: the power of two that does, or all.
int64_t extent_of_tiles(int64_t extent, int64_t count) {
  if (count == 1) return std::max<int64_t>(extent, 1);
  int64_t tile = 1;
  while (tile < extent && (extent + tile - 1) / tile > count) tile *= 2;
  return tile;
}

Tiles tiles_of(const Parts& parts, const Tensor& weight, const Tensor& scale) {
  const bool is_number =
      scale.dtype == DType::f32 || scale.dtype == DType::f16 || scale.dtype == DType::bf16;
  parts.require(is_number && scale.sizes.size() <= 2, "its scales are no matrix of numbers");
  std::vector<int64_t> counts = scale.sizes;
  while (counts.size() < 2) counts.push_back(1);
  const int64_t height = extent_of_tiles(weight.sizes[0], counts[0]),
                width = extent_of_tiles(weight.sizes[1], counts[1]);
  parts.require((weight.sizes[0] + height - 1) / height == counts[0] &&
                    (weight.sizes[1] + width - 1) / width == counts[1],
                "its scales do not fit: they are of no tiles of 2^a rows and 2^b columns");
  return {weight, scale, height, width};
}

}  // namespace

QuantizedWeights take_float8(Tensors& tensors) {
  QuantizedWeights weights;
  for (const std::string& name : names_before(tensors, ".weight")) {
    if (tensors.at(name + ".weight").dtype != DType::f8_e4m3fn) continue;
    Parts parts(name, tensors);
    const Tensor weight = parts.take(".weight", DType::f8_e4m3fn, 2);
    Tensor scale = parts.take_if(".weight_scale_inv");
    if (scale.bytes.empty()) scale = parts.take_if(".weight_scale");
    parts.require(!scale.bytes.empty(), "it has no .weight_scale_inv and no .weight_scale");
    for (const char* of_input : {".input_scale", ".activation_scale", ".input_scale_ub"})
      (void)parts.take_if(of_input);  // activations are not rounded to 8 bits here
    const Tiles tiles = tiles_of(parts, weight, scale);
    weights[name + ".weight"] = {weight.sizes, [tiles] { return widened(tiles); }};
  }
  return weights;
}

}  // namespace taper::huggingface::internal
