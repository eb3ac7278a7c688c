// compressed-tensors, which vLLM's tools write: integers of 4 bits in words, f8_e4m3fn, or the MX
// formats.
#include "taper/exporter/importers/huggingface/integers.h"

namespace taper::huggingface::internal {
namespace {

using nlohmann::json;

/// X.weight_packed i32 (out, in / 8), the first integer in the lowest bits, each of them plus 8;
/// X.weight_scale (out, groups); X.weight_shape (2).
QuantizedWeight take_packed(Parts& parts) {
  const Tensor words = parts.take(".weight_packed", DType::i32, 2);
  const Tensor scales = parts.take_numbers({".weight_scale"}),
               shape = parts.take_if(".weight_shape");
  parts.require(scales.sizes.size() == 2 && scales.sizes[0] == words.sizes[0] &&
                    shape.sizes == std::vector<int64_t>{2},
                "its scales or its shape do not fit");
  parts.require(parts.take_if(".weight_zero_point").bytes.empty() &&
                    parts.take_if(".weight_g_idx").bytes.empty(),
                "zero points and groups in another order are not read");
  Integers m;
  m.out = words.sizes[0], m.in = words.sizes[1] * 8;
  const bool fits = (shape.dtype == DType::i64 && element<int64_t>(shape, 0) == m.out &&
                     element<int64_t>(shape, 1) == m.in) ||
                    (shape.dtype == DType::i32 && element<int32_t>(shape, 0) == m.out &&
                     element<int32_t>(shape, 1) == m.in);
  parts.require(fits && m.in % scales.sizes[1] == 0, "its shape does not fit its integers");
  m.group = group_of(parts, m.in / scales.sizes[1], m.in);
  m.values = [words](int64_t row, int64_t first, uint8_t* to) {
    for (int k = 0; k < 32; ++k) {
      const auto word = element<uint32_t>(words, row * words.sizes[1] + (first + k) / 8);
      to[k] = static_cast<uint8_t>(word >> k % 8 * 4 & 15);
    }
  };
  m.zero = [](int64_t, int64_t) { return 8; };
  m.scale = [scales](int64_t row, int64_t group) {
    return number(scales, row * scales.sizes[1] + group);
  };
  return {{m.out, m.in}, [weight = Named(parts), m] { return in_blocks(weight, m); }};
}

/// What each group of layers says of its weights.
void require_symmetric_nibbles(const json& quantization) {
  const auto groups = quantization.find("config_groups");
  if (groups == quantization.end() || !groups->is_object()) return;
  for (const json& group : *groups) {
    const json weights = group.is_object() ? group.value("weights", json()) : json();
    if (!weights.is_object()) continue;
    const auto symmetric = weights.find("symmetric");
    if (integer(weights, "num_bits", 4) != 4 || (symmetric != weights.end() && *symmetric != true))
      throw ExportError(
          "config: of compressed-tensors, symmetric integers of 4 bits are read, not " +
          weights.dump().substr(0, 100));
  }
}

}  // namespace

QuantizedWeights take_compressed(const json& quantization, Tensors& tensors) {
  const auto at = quantization.find("format");
  const std::string format =
      at != quantization.end() && at->is_string() ? at->get<std::string>() : "";
  if (format == "float-quantized" || format == "naive-quantized")
    return take_float8(quantization, tensors);
  if (format == "mxfp8-quantized" || format == "mxfp6-pack-quantized" ||
      format == "mxfp4-pack-quantized")
    return take_compressed_mx(format, tensors);
  if (format != "pack-quantized")
    throw ExportError("config: compressed-tensors of the format \"" + format +
                      "\" are not read; pack-quantized, float-quantized, mxfp8-quantized, "
                      "mxfp6-pack-quantized and mxfp4-pack-quantized are. Take the model before it "
                      "was quantized, and give a recipe: --recipe int4-g32");
  require_symmetric_nibbles(quantization);
  QuantizedWeights weights;
  for (const std::string& name : names_before(tensors, ".weight_packed")) {
    Parts parts(name, tensors);
    weights[name + ".weight"] = take_packed(parts);
  }
  return weights;
}

}  // namespace taper::huggingface::internal
