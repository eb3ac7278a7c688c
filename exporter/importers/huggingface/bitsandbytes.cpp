// bitsandbytes: NF4 of QLoRA (arXiv:2305.14314), and integers of 8 bits (arXiv:2208.07339).
//
//   4 bits   X.weight: codes of the elements in row-major order, the first of two in the high bits
//            X.weight.quant_state.bitsandbytes__nf4: sizes as JSON
//            X.weight.quant_map f32 (16): the levels
//            X.weight.absmax: the factor of each block of elements, f32. Or, quantized again, u8:
//            X.weight.nested_quant_map f32 (256) has its levels, X.weight.nested_absmax f32 a
//            factor for each block of them, and `nested_offset` is added
//   8 bits   X.weight i8 (out, in), X.SCB f32 (out): element (i, j) is weight SCB[i] / 127
#include <algorithm>
#include <cmath>

#include "taper/exporter/importers/huggingface/integers.h"
#include "taper/kernels/quantized/float_levels.h"

namespace taper::huggingface::internal {
namespace {

using nlohmann::json;

constexpr int64_t nf4_block = 64;  // of the layout nf4
const std::string state_of_nf4 = ".weight.quant_state.bitsandbytes__nf4";

/// What quant_state says: sizes, and how many elements share a factor.
struct State {
  int64_t out = 0, in = 0, shared = 0, nested_shared = 0;
  double offset = 0;
};

State state_in(const Named& weight, const Tensor& text) {
  State s;
  try {
    const json told = json::parse(text.bytes.begin(), text.bytes.end());
    const json& sizes = told.at("shape");
    weight.require(sizes.is_array() && sizes.size() == 2, "it is no matrix");
    s.out = sizes[0].get<int64_t>(), s.in = sizes[1].get<int64_t>();
    s.shared = told.at("blocksize").get<int64_t>();
    s.nested_shared = told.value("nested_blocksize", int64_t{0});
    s.offset = told.value("nested_offset", 0.0);
  } catch (const json::exception& e) {
    weight.require(false, "its quant_state is damaged: " + std::string(e.what()).substr(0, 80));
  }
  weight.require(s.shared > 0 && s.shared % nf4_block == 0,
                 "blocks of " + std::to_string(s.shared) + " elements are not read; " +
                     std::to_string(nf4_block) + " and its multiples are");
  return s;
}

/// The factors of the blocks: of `state.shared` elements each.
class Factors {
 public:
  Factors(Parts& parts, const State& state) : state_(state) {
    factors_ = parts.take_if(".weight.absmax");
    const int64_t count = (state.out * state.in - 1) / state.shared + 1;
    const bool is_nested = factors_.dtype == DType::u8;
    parts.require((is_nested || factors_.dtype == DType::f32) &&
                      factors_.sizes == std::vector<int64_t>{count},
                  "weight.absmax is not one f32 or u8 for each block");
    if (!is_nested) return;
    levels_ = parts.take(".weight.nested_quant_map", DType::f32, 1);
    nested_ = parts.take(".weight.nested_absmax", DType::f32, 1);
    parts.require(levels_.sizes[0] == 256 && state.nested_shared > 0 &&
                      nested_.sizes[0] == (count - 1) / state.nested_shared + 1,
                  "weight.nested_quant_map or weight.nested_absmax does not fit");
  }
  float of(int64_t element_index) const {
    const int64_t i = element_index / state_.shared;
    if (levels_.bytes.empty()) return element<float>(factors_, i);
    const float level = element<float>(levels_, element<uint8_t>(factors_, i)),
                nested = element<float>(nested_, i / state_.nested_shared);
    return level * nested + static_cast<float>(state_.offset);
  }

 private:
  State state_;
  Tensor factors_, levels_, nested_;
};

Repacked repacked(const Named& weight, const Tensor& codes, const State& s,
                  const Factors& factors) {
  const int64_t count = s.out * s.in / nf4_block;
  constexpr int bytes = block_of(Layout::nf4).bytes;
  const auto blocks = allocate(static_cast<size_t>(count * bytes));
  for (int64_t b = 0; b < count; ++b) {
    std::byte* to = blocks.get() + b * bytes;
    const Half scale(factors.of(b * nf4_block));
    weight.require(std::isfinite(static_cast<float>(scale)), "a scale is too large for f16");
    std::memcpy(to, &scale, sizeof scale);
    const auto code = [&](int64_t k) {
      const auto both = element<uint8_t>(codes, (b * nf4_block + k) / 2);
      return k % 2 == 0 ? both >> 4 : both & 15;
    };
    for (int j = 0; j < nf4_block / 2; ++j) {  // docs/format.md: 16 bytes for each 32 elements
      const int64_t k = j / 16 * 32 + j % 16;
      to[2 + j] = static_cast<std::byte>(code(k) | code(k + 16) << 4);
    }
  }
  return {DType::f32, Layout::nf4, blocks};
}

QuantizedWeight take_nf4(Parts& parts) {
  const State s = state_in(parts, parts.take(state_of_nf4, DType::u8, 1));
  const Tensor codes = parts.take_if(".weight");  // of any dtype: two elements in each byte
  const auto elements = 2 * static_cast<int64_t>(codes.bytes.size());
  parts.require(s.in > 0 && s.out > 0 && elements / s.in == s.out && elements % s.in == 0,
                "(" + std::to_string(s.out) + ", " + std::to_string(s.in) +
                    ") elements do not fit " + std::to_string(codes.bytes.size()) +
                    " bytes of weight");
  parts.require(s.in % nf4_block == 0, "rows of " + std::to_string(s.in) +
                                           " elements do not divide into blocks of " +
                                           std::to_string(nf4_block));
  const Tensor levels = parts.take(".weight.quant_map", DType::f32, 1);
  bool are_known = levels.sizes[0] == 16;
  for (int i = 0; i < 16 && are_known; ++i)
    are_known = element<float>(levels, i) == quantized::nf4_levels[i];
  parts.require(are_known, "the levels in weight.quant_map are not those of NF4");
  const Factors factors(parts, s);
  return {{s.out, s.in}, [weight = Named(parts), codes, s, factors] {
            return repacked(weight, codes, s, factors);
          }};
}

QuantizedWeight take_integers(Parts& parts) {
  const Tensor weight = parts.take(".weight", DType::i8, 2), scales = parts.take_if(".SCB");
  (void)parts.take_if(".weight_format");  // how the GPU wants them
  Integers m;
  m.out = weight.sizes[0], m.in = weight.sizes[1], m.bits = 8;
  parts.require(scales.dtype == DType::f32 && scales.sizes == std::vector<int64_t>{m.out},
                "SCB is not one f32 for each row");
  m.group = group_of(parts, -1, m.in);
  constexpr int zero = 128;
  m.values = [weight](int64_t row, int64_t first, uint8_t* to) {
    for (int k = 0; k < 32; ++k)
      to[k] =
          static_cast<uint8_t>(element<int8_t>(weight, row * weight.sizes[1] + first + k) + zero);
  };
  m.zero = [](int64_t, int64_t) { return zero; };
  m.scale = [scales](int64_t row, int64_t) { return element<float>(scales, row) / 127; };
  return {{m.out, m.in}, [named = Named(parts), m] { return in_blocks(named, m); }};
}

}  // namespace

QuantizedWeights take_bitsandbytes(Tensors& tensors) {
  QuantizedWeights weights;
  const std::vector<std::string> others = names_before(tensors, ".quant_state.bitsandbytes__fp4");
  if (!others.empty())
    throw ExportError("weight " + others.front() +
                      ": of bitsandbytes, nf4 and integers of 8 bits are read, not fp4");
  for (const std::string& name : names_before(tensors, state_of_nf4)) {
    Parts parts(name, tensors);
    weights[name + ".weight"] = take_nf4(parts);
  }
  for (const std::string& name : names_before(tensors, ".SCB")) {
    Parts parts(name, tensors);
    weights[name + ".weight"] = take_integers(parts);
  }
  return weights;
}

}  // namespace taper::huggingface::internal
