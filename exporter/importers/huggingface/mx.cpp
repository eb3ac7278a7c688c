// The formats of the OCP Microscaling Formats (MX) specification, version 1.0: small floats in
// blocks of 32 along the input, and an exponent of each block. Both tools store the floats as a
// stream of bits, from the lowest bit of a byte on.
#include "taper/exporter/importers/huggingface/quantized_parts.h"

namespace taper::huggingface::internal {
namespace {

constexpr int64_t of_block = 32;  // elements

struct MxFormat {
  Layout layout;
  int bits;

  int64_t bytes() const { return of_block * bits / 8; }
};

/// The block (docs/format.md, "Blocks") of the floats that `from` holds.
void pack(const std::byte* from, std::byte scale, int bits, std::byte* to) {
  unsigned element[of_block];
  for (int k = 0; k < of_block; ++k) {
    unsigned pair = 0;  // of bytes, in which the element lies
    for (int i = 0; i < 2 && k * bits / 8 + i < of_block * bits / 8; ++i)
      pair |= static_cast<unsigned>(from[k * bits / 8 + i]) << 8 * i;
    element[k] = pair >> k * bits % 8 & ((1u << bits) - 1);
  }
  *to++ = scale;
  if (bits == 8) {
    for (const unsigned e : element) *to++ = static_cast<std::byte>(e);
    return;
  }
  for (int j = 0; j < 16; ++j)
    *to++ = static_cast<std::byte>((element[j] & 15) | (element[j + 16] & 15) << 4);
  if (bits == 4) return;
  for (int j = 0; j < 8; ++j)
    *to++ = static_cast<std::byte>(element[j] >> 4 | element[j + 8] >> 4 << 2 |
                                   element[j + 16] >> 4 << 4 | element[j + 24] >> 4 << 6);
}

Repacked repacked(const Tensor& floats, const Tensor& scales, MxFormat format) {
  const auto count = static_cast<int64_t>(scales.bytes.size());
  const Blocks to(format.layout, count, of_block);
  for (int64_t i = 0; i < count; ++i)
    pack(floats.bytes.data() + i * format.bytes(), scales.bytes[static_cast<size_t>(i)],
         format.bits, to.at(i, 0));
  return to.finish();
}

}  // namespace

/// gpt-oss: X_blocks u8 (…, out, in / 32, 16) and X_scales u8 (…, out, in / 32).
QuantizedWeights take_mxfp4(Tensors& tensors) {
  constexpr MxFormat format{Layout::mxfp4, 4};
  QuantizedWeights weights;
  for (const std::string& name : names_before(tensors, "_blocks")) {
    Parts parts(name, tensors);
    const size_t rank = tensors.at(name + "_blocks").sizes.size();
    const Tensor blocks = parts.take("_blocks", DType::u8, rank);
    const Tensor scales = parts.take("_scales", DType::u8, rank - 1);
    std::vector<int64_t> sizes = scales.sizes;
    sizes.push_back(format.bytes());
    parts.require(blocks.sizes == sizes && rank > 2,
                  "_blocks are not 16 bytes for each element of _scales");
    sizes.pop_back(), sizes.back() *= of_block;
    weights[name + "_blocks"] = {sizes, [=] { return repacked(blocks, scales, format); }};
  }
  return weights;
}

/// X.weight f8_e4m3fn (out, in), or X.weight_packed u8 (out, in bits / 8); and the exponents
/// X.weight_scale u8 (out, in / 32).
QuantizedWeights take_compressed_mx(const std::string& name_of_format, Tensors& tensors) {
  const bool is_packed = name_of_format != "mxfp8-quantized";
  const MxFormat format = !is_packed ? MxFormat{Layout::mxfp8_e4m3, 8}
                          : name_of_format == "mxfp6-pack-quantized"
                              ? MxFormat{Layout::mxfp6_e2m3, 6}
                              : MxFormat{Layout::mxfp4, 4};
  const std::string end = is_packed ? ".weight_packed" : ".weight";
  QuantizedWeights weights;
  for (const std::string& name : names_before(tensors, end)) {
    if (!is_packed && tensors.at(name + end).dtype != DType::f8_e4m3fn) continue;
    Parts parts(name, tensors);
    const Tensor floats = parts.take(end, is_packed ? DType::u8 : DType::f8_e4m3fn, 2);
    const Tensor scales = parts.take(".weight_scale", DType::u8, 2);
    parts.require(
        floats.sizes[0] == scales.sizes[0] && floats.sizes[1] == scales.sizes[1] * format.bytes(),
        end + " has not " + std::to_string(format.bytes()) +
            " bytes, those of 32 elements, for each element of .weight_scale");
    parts.require(parts.take_if(".weight_zero_point").bytes.empty(), "zero points are not read");
    for (const char* of_input : {".input_scale", ".input_global_scale"})
      (void)parts.take_if(of_input);  // activations are not rounded to small floats here
    weights[name + ".weight"] = {{scales.sizes[0], scales.sizes[1] * of_block},
                                 [=] { return repacked(floats, scales, format); }};
  }
  return weights;
}

}  // namespace taper::huggingface::internal
