// Weights in f8_e4m3fn: X.weight (out, in), and a factor for each tile of it. DeepSeek and Qwen
// call the factors X.weight_scale_inv, others X.weight_scale. They become bf16, as the authors' own
// scripts make them. weight_block_size in the configuration is the size of a tile.
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

/// A number for each tile, row or matrix.
struct Scales {
  Tensor numbers;
  int64_t rows, columns;
};

Scales take_scales(Parts& parts) {
  Scales s{parts.take_numbers({".weight_scale_inv", ".weight_scale"}), 1, 1};
  const std::vector<int64_t>& sizes = s.numbers.sizes;
  parts.require(sizes.size() <= 2, "its scales are no matrix");
  if (!sizes.empty()) s.rows = sizes[0];
  if (sizes.size() > 1) s.columns = sizes[1];
  return s;
}

/// The extent of tiles of which `count` cover `extent`: the one that is said if it does (0: none
/// is), or the power of two that does.
int64_t extent_of_tiles(int64_t extent, int64_t count, int64_t said) {
  const auto covers = [&](int64_t tile) { return (extent - 1) / tile + 1 <= count; };
  if (count == 1) return extent;
  if (count == extent) return 1;
  if (said > 0) return said;
  int64_t tile = 1;
  while (!covers(tile)) tile *= 2;
  return tile;
}

/// weight_block_size: rows and columns of a tile; zeros if there is none.
std::vector<int64_t> said_tile(const nlohmann::json& quantization) {
  const auto at = quantization.find("weight_block_size");
  if (at == quantization.end() || at->is_null()) return {0, 0};
  const auto is_extent = [](const nlohmann::json& n) {
    return n.is_number_integer() && n > 0 && n <= INT32_MAX;
  };
  if (!at->is_array() || at->size() != 2 || !is_extent((*at)[0]) || !is_extent((*at)[1]))
    throw ExportError("config: quantization_config.weight_block_size must be two sizes, it is " +
                      at->dump().substr(0, 60));
  return {(*at)[0], (*at)[1]};
}

Tiles tiles_of(const Parts& parts, const Tensor& weight, const Scales& scales,
               const std::vector<int64_t>& said) {
  const int64_t rows = weight.sizes[0], columns = weight.sizes[1],
                height = extent_of_tiles(rows, scales.rows, said[0]),
                width = extent_of_tiles(columns, scales.columns, said[1]);
  parts.require(
      (rows - 1) / height + 1 == scales.rows && (columns - 1) / width + 1 == scales.columns,
      "its scales do not fit: (" + std::to_string(rows) + ", " + std::to_string(columns) +
          ") has not (" + std::to_string(scales.rows) + ", " + std::to_string(scales.columns) +
          ") tiles of " + std::to_string(height) + " rows and " + std::to_string(width) +
          " columns");
  return {weight, scales.numbers, height, width};
}

}  // namespace

QuantizedWeights take_float8(const nlohmann::json& quantization, Tensors& tensors) {
  const std::vector<int64_t> said = said_tile(quantization);
  QuantizedWeights weights;
  for (const std::string& name : names_before(tensors, ".weight")) {
    if (tensors.at(name + ".weight").dtype != DType::f8_e4m3fn) continue;
    Parts parts(name, tensors);
    const Tensor weight = parts.take(".weight", DType::f8_e4m3fn, 2);
    const Scales scales = take_scales(parts);
    for (const char* of_input : {".input_scale", ".activation_scale", ".input_scale_ub"})
      (void)parts.take_if(of_input);  // activations are not rounded to 8 bits here
    const Tiles tiles = tiles_of(parts, weight, scales, said);
    weights[name + ".weight"] = {weight.sizes, [tiles] { return widened(tiles); }};
  }
  return weights;
}

}  // namespace taper::huggingface::internal
