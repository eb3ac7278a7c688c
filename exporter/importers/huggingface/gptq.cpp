// GPTQ and AWQ: words of 32 bits hold several integers each. E. Frantar and others, "GPTQ",
// arXiv:2210.17323; J. Lin and others, "AWQ", arXiv:2306.00978.
//
//            qweight                     qzeros                         scales
//   GPTQ     (in per words, out)         (groups, out in words)         (groups, out)
//   AWQ      (in, out in words)          (groups, out in words)         (groups, out)
//
// In a word, GPTQ has the first integer in the lowest bits. AWQ has them in another order.
#include "taper/exporter/importers/huggingface/integers.h"

namespace taper::huggingface::internal {
namespace {

using nlohmann::json;

/// Integers in the words of a matrix: several of them from one row, or from one column.
struct Words {
  Tensor words;
  int bits;
  uint32_t added = 0;  ///< to each word

  int per_word() const { return 32 / bits; }
  int at(int64_t word, int place) const {
    const uint32_t bits_of_word = element<uint32_t>(words, word) + added;
    return static_cast<int>(bits_of_word >> (place * bits) & ((1u << bits) - 1));
  }
  /// Several rows share a row of words.
  int along_rows(int64_t row, int64_t column) const {
    return at(row / per_word() * words.sizes[1] + column, static_cast<int>(row % per_word()));
  }
  /// Several columns share a word.
  int along_columns(int64_t row, int64_t column) const {
    return at(row * words.sizes[1] + column / per_word(), static_cast<int>(column % per_word()));
  }
  /// The same in the order of AWQ.
  int interleaved(int64_t row, int64_t column) const {
    constexpr int place[] = {0, 4, 1, 5, 2, 6, 3, 7};
    return at(row * words.sizes[1] + column / 8, place[column % 8]);
  }
};

/// The tensors of one weight, of sizes that fit each other.
struct Packed {
  Words weight, zeros;
  Tensor scales;
  int64_t out, in, group;
};

Packed take_packed(Parts& parts, const json& quantization, bool rows_in_words) {
  const int bits = bits_of(quantization, "bits");
  const Tensor weight = parts.take(".qweight", DType::i32, 2),
               zeros = parts.take(".qzeros", DType::i32, 2),
               scales = parts.take(".scales", DType::f16, 2);
  Packed p{{weight, bits}, {zeros, bits}, scales, 0, 0, 0};
  const std::vector<int64_t>& sizes = p.weight.words.sizes;
  const int64_t per_word = p.weight.per_word();
  p.in = rows_in_words ? sizes[0] * per_word : sizes[0];
  p.out = rows_in_words ? sizes[1] : sizes[1] * per_word;
  p.group = group_of(parts, integer(quantization, "group_size", -1), p.in);
  const int64_t groups = p.in / p.group;
  parts.require(p.scales.sizes == std::vector<int64_t>{groups, p.out},
                "its scales do not fit " + std::to_string(groups) + " groups of " +
                    std::to_string(p.out) + " outputs");
  parts.require(p.out % per_word == 0 &&
                    p.zeros.words.sizes == std::vector<int64_t>{groups, p.out / per_word},
                "its zero points do not fit its scales");
  return p;
}

Integers integers_of(const Packed& p) {
  Integers m;
  m.out = p.out, m.in = p.in, m.group = p.group, m.bits = p.weight.bits;
  m.scale = [scales = p.scales](int64_t row, int64_t group) {
    return number(scales, group * scales.sizes[1] + row);
  };
  return m;
}

/// Groups must be neighbours: g_idx says the group of each input.
void check_order(Parts& parts, const Packed& p) {
  const Tensor order = parts.take_if(".g_idx");
  if (order.bytes.empty()) return;
  parts.require(order.dtype == DType::i32 && order.sizes == std::vector<int64_t>{p.in},
                ".g_idx is not a group for each input");
  for (int64_t i = 0; i < p.in; ++i)
    parts.require(element<int32_t>(order, i) == i / p.group,
                  "its inputs are in the order of activations (desc_act), which is not read; take "
                  "a model that was quantized without desc_act");
}

bool is(const json& quantization, const char* key, const char* value) {
  const auto at = quantization.find(key);
  return at != quantization.end() && *at == value;
}

}  // namespace

QuantizedWeights take_gptq(const json& quantization, Tensors& tensors) {
  const bool is_second = is(quantization, "checkpoint_format", "gptq_v2");
  if (quantization.contains("checkpoint_format") && !is_second &&
      !is(quantization, "checkpoint_format", "gptq"))
    throw ExportError("config: quantization_config.checkpoint_format is " +
                      quantization["checkpoint_format"].dump().substr(0, 60) +
                      "; of GPTQ, \"gptq\" and \"gptq_v2\" are read");
  QuantizedWeights weights;
  for (const std::string& name : names_before(tensors, ".qweight")) {
    Parts parts(name, tensors);
    Packed p = take_packed(parts, quantization, true);
    check_order(parts, p);
    // The first version stores words of zero points minus 1. A zero point of 0 borrows from the
    // next.
    if (!is_second) p.zeros.added = p.zeros.bits == 4 ? 0x11111111 : 0x01010101;
    Integers m = integers_of(p);
    m.values = [w = p.weight](int64_t row, int64_t first, uint8_t* to) {
      for (int k = 0; k < 32; ++k) to[k] = static_cast<uint8_t>(w.along_rows(first + k, row));
    };
    m.zero = [z = p.zeros](int64_t row, int64_t group) { return z.along_columns(group, row); };
    weights[name + ".weight"] = {{p.out, p.in},
                                 [weight = Named(parts), m] { return in_blocks(weight, m); }};
  }
  return weights;
}

QuantizedWeights take_awq(const json& quantization, Tensors& tensors) {
  if (quantization.contains("version") && !is(quantization, "version", "gemm") &&
      !is(quantization, "version", "GEMM"))
    throw ExportError("config: quantization_config.version is " +
                      quantization["version"].dump().substr(0, 60) +
                      "; of AWQ, the version \"gemm\" is read");
  if (bits_of(quantization, "bits") != 4)
    throw ExportError("config: quantization_config.bits must be 4 with AWQ");
  QuantizedWeights weights;
  for (const std::string& name : names_before(tensors, ".qweight")) {
    Parts parts(name, tensors);
    const Packed p = take_packed(parts, quantization, false);
    Integers m = integers_of(p);
    m.values = [w = p.weight](int64_t row, int64_t first, uint8_t* to) {
      for (int k = 0; k < 32; ++k) to[k] = static_cast<uint8_t>(w.interleaved(first + k, row));
    };
    m.zero = [z = p.zeros](int64_t row, int64_t group) { return z.interleaved(group, row); };
    weights[name + ".weight"] = {{p.out, p.in},
                                 [weight = Named(parts), m] { return in_blocks(weight, m); }};
  }
  return weights;
}

}  // namespace taper::huggingface::internal
