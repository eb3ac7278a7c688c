#include "taper/delegates/xnnpack/compile/rounded.h"

#include <algorithm>
#include <cmath>

#include "taper/delegates/xnnpack/compile/round_trips.h"
#include "taper/delegates/xnnpack/compile/table.h"
#include "taper/delegates/xnnpack/runtime/backend.h"
#include "taper/exporter/base/error.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/delegate.h"

namespace taper::delegates::xnnpack {
namespace rounding {
namespace {

using blob::Function, blob::Kind;
using ir::Call, ir::Node, ir::Value;

constexpr int64_t least_block = 32, most_block = 1 << 15;  // what the library takes

// ---- the weight ----

std::vector<int64_t> sizes_of(const eager::Tensor& t) {
  std::vector<int64_t> sizes;
  for (const Dim d : t.sizes()) sizes.push_back(d.value());
  return sizes;
}

bool are_zero(const Value* zero_points, passes::ConstantValues& constants) {
  if (zero_points == nullptr) return true;
  if (!constants.find(zero_points)) return false;
  const auto list = constants.at(zero_points).to(DType::f64).to_vector<double>();
  return std::ranges::all_of(list, [](double z) { return z == 0; });
}

/// Integers of i8 that share a scale with their neighbours of a row.
std::optional<IntegerWeight> in_blocks(const Value* integers, const Value* scales,
                                       const Value* zero_points, int64_t block,
                                       passes::ConstantValues& constants) {
  if (integers->type.dtype != DType::i8 || integers->type.rank != 2 || block < 1 ||
      !constants.find(integers) || !constants.find(scales) || !are_zero(zero_points, constants))
    return {};
  const eager::Tensor& q = constants.at(integers);
  const std::vector<int64_t> sizes = sizes_of(q);
  if (sizes[1] % block != 0) return {};
  return IntegerWeight{q.to_vector<int8_t>(),
                       constants.at(scales).to(DType::f32).to_vector<float>(), sizes[0], sizes[1],
                       block};
}

std::optional<IntegerWeight> weight_of(const Value* value, passes::ConstantValues& constants) {
  if (const Node* node = producer<ops::torchao_dequantize_affine>(value)) {
    const Call<ops::torchao_dequantize_affine> c(*node);
    const auto& block = c.get<"block_size">();
    if (block.size() != 2 || !proves_equal(block[0], 1) || !block[1].is_constant()) return {};
    return in_blocks(c.get<"input">(), c.get<"scale">(), c.get<"zero_point">(), block[1].value(),
                     constants);
  }
  if (const Node* node = producer<ops::quantized_decomposed_dequantize_per_channel_group>(value)) {
    const Call<ops::quantized_decomposed_dequantize_per_channel_group> c(*node);
    return in_blocks(c.get<"input">(), c.get<"scales">(), c.get<"zero_points">(),
                     c.get<"group_size">().value(), constants);
  }
  if (const Node* node = producer<ops::quantized_decomposed_dequantize_per_channel>(value)) {
    const Call<ops::quantized_decomposed_dequantize_per_channel> c(*node);
    if (!proves_equal(c.get<"axis">(), 0) || value->type.rank != 2 ||
        !value->type.sizes[1].is_constant())
      return {};
    return in_blocks(c.get<"input">(), c.get<"scales">(), c.get<"zero_points">(),
                     value->type.sizes[1].value(), constants);
  }
  return {};
}

bool is_constant_vector(const Value* v) {
  return v->origin == Value::Origin::constant && v->type.rank == 1 && v->type.dtype == DType::f32;
}

// ---- what the library stores ----

/// Two integers in a byte, q + 8 each.
std::vector<uint8_t> in_half_bytes(const std::vector<int8_t>& integers) {
  std::vector<uint8_t> bytes(integers.size() / 2);
  const auto half = [](int8_t q) { return static_cast<uint32_t>(q + 8) & 15u; };
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(half(integers[2 * i]) | half(integers[2 * i + 1]) << 4);
  return bytes;
}

Ref add_weight_of_8_bits(Lowering& out, const IntegerWeight& w) {
  const Ref filter = out.constant(w.integers, {w.outputs, w.inputs});
  out.give_scales(filter, 8, out.constant(w.scales, {w.outputs}), 0);
  return filter;
}
Ref add_weight(Lowering& out, const IntegerWeight& w) {
  if (!w.has_one_scale_a_row()) {
    const std::vector<BFloat16> scales(w.scales.begin(), w.scales.end());
    const Ref filter = out.constant(in_half_bytes(w.integers), {w.outputs, w.inputs / 2});
    const Ref stored = out.constant(scales, {w.outputs, w.inputs / w.block});
    out.give_scales(filter, 4, stored, 0, static_cast<uint32_t>(w.block));
    return filter;
  }
  if (!w.fits_half_bytes()) return add_weight_of_8_bits(out, w);
  const Ref filter = out.constant(in_half_bytes(w.integers), {w.outputs, w.inputs / 2});
  out.give_scales(filter, 4, out.constant(w.scales, {w.outputs}), 0);
  return filter;
}

// ---- rows of the table ----

constexpr bool heavy = true;

std::string refuses_group(const Node& node) {
  const auto& name = std::get<std::string>(node.arguments[0]);
  const bool is_own = name == name_of(Precision::f32) || name == name_of(Precision::f16);
  return is_own ? "" : "another backend runs it";
}
void lower_group(Lowering& out, const Node& node) {
  const ir::Graph& body = *node.bodies[0];
  passes::ConstantValues constants(body);
  const auto product = rounded_product(*body.outputs()[0].value->node, constants);
  const Value* x = std::get<std::vector<Value*>>(node.arguments[1])[0];
  const Ref bias =
      product->bias == nullptr
          ? Ref()
          : out.constant(constants.at(product->bias).to_vector<float>(), {product->weight.outputs});
  Ref result = add_rounded_product(out, out.ref(x), product->weight, bias);
  const ir::Type& type = node.result()->type;
  if (type.rank != x->type.rank) {
    std::vector<int64_t> sizes;
    for (int d = 0; d < type.rank; ++d)
      sizes.push_back(type.sizes[d].is_constant() ? type.sizes[d].value() : 0);
    result = out.add(Kind::reshape, Function::none, {result}, std::move(sizes));
  }
  out.define(node.result(), result);
}

template <const Operator& op>
std::string refuses_blocks(const Node& node) {
  const Call<op> c(node);
  const Value *weight = c.template get<"weight">(), *bias = c.template get<"bias">();
  if (weight->origin != Value::Origin::constant ||
      (bias != nullptr && bias->origin != Value::Origin::constant))
    return "a weight or a bias is no constant";
  return "";
}
/// The library multiplies such a bias with the scales of its filter.
Ref add_divided(Lowering& out, const Node& node, const eager::Tensor& bias,
                const std::vector<float>& scales) {
  std::vector<float> elements = bias.to_vector<float>();
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] /= scales[i];
    if (!std::isfinite(elements[i]))
      throw ExportError("xnnpack: " + ir::describe(node) + ": element " + std::to_string(i) +
                        " of its bias is too large beside that row of the weight, or not finite; "
                        "export without the backend, or repair the weight");
  }
  return out.constant(elements, {static_cast<int64_t>(elements.size())});
}
/// The weight in 8 bits with a scale for each row. `op` says whether the input is rounded, too.
template <const Operator& op>
void lower_blocks(Lowering& out, const Node& node) {
  const Call<op> c(node);
  const Value *weight = c.template get<"weight">(), *bias = c.template get<"bias">();
  const std::vector<float> elements = out.elements(weight).unpacked().template to_vector<float>();
  if (!std::ranges::all_of(elements, [](float e) { return std::isfinite(e); }))
    throw ExportError("xnnpack: " + ir::describe(node) +
                      ": its weight holds infinity or NaN; repair the weight");
  const IntegerWeight w =
      with_a_scale_a_row(elements, weight->type.sizes[0].value(), weight->type.sizes[1].value());
  const Ref x = out.ref(c.template get<"input">());
  if (&op == &ops::taper_block_linear_q8)
    return out.define(node.result(),
                      add_rounded_product(out, x, w, bias == nullptr ? Ref() : out.ref(bias)));
  const Ref filter = add_weight_of_8_bits(out, w),
            scaled = bias == nullptr ? Ref() : add_divided(out, node, out.elements(bias), w.scales);
  out.define(node.result(), out.add(Kind::fully_connected, Function::none, {x, filter, scaled}));
}

const Row rows[] = {
    {&ir::ops::delegate, refuses_group, lower_group, heavy},
    {&ops::taper_block_linear, refuses_blocks<ops::taper_block_linear>,
     lower_blocks<ops::taper_block_linear>, heavy},
    {&ops::taper_block_linear_q8, refuses_blocks<ops::taper_block_linear_q8>,
     lower_blocks<ops::taper_block_linear_q8>, heavy},
};

}  // namespace
}  // namespace rounding

bool is_taken(const IntegerWeight& w) {
  const auto is_usable = [](float s) {
    return s > 0 && std::isnormal(s) && std::isnormal(float{BFloat16(s)});
  };
  if (w.outputs < 1 || w.inputs < 1 ||
      w.scales.size() != static_cast<size_t>(w.outputs * (w.inputs / w.block)) ||
      !std::ranges::all_of(w.scales, is_usable))
    return false;
  return w.has_one_scale_a_row() || (w.fits_half_bytes() && w.block % rounding::least_block == 0 &&
                                     w.block <= rounding::most_block);
}

bool IntegerWeight::fits_half_bytes() const {
  return inputs % 2 == 0 &&
         std::ranges::all_of(integers, [](int8_t q) { return q >= -8 && q <= 7; });
}

std::optional<RoundedProduct> rounded_product(ir::Node& node, passes::ConstantValues& constants) {
  using namespace rounding;
  if (node.op != &ops::linear) return scaled_product(node, constants);
  const Call<ops::linear> c(node);
  const Value *weight = c.get<"weight">(), *bias = c.get<"bias">();
  const auto trip = quantized_and_back(c.get<"input">());
  if (!trip || weight->node == nullptr || (bias != nullptr && !is_constant_vector(bias)) ||
      !refuses_value(*trip->input).empty() || !refuses_value(*node.result()).empty())
    return {};
  auto integers = weight_of(weight, constants);
  if (!integers || !is_taken(*integers)) return {};
  partition::Group group = nodes_between(*trip->input, node);
  if (group.empty()) return {};
  return RoundedProduct{std::move(group), trip->input, bias, std::move(*integers)};
}

Ref add_rounded_product(Lowering& out, Ref x, const IntegerWeight& weight, Ref bias) {
  return out.add(blob::Kind::fully_connected, blob::Function::none,
                 {out.rounded(x), rounding::add_weight(out, weight), bias});
}

IntegerWeight with_a_scale_a_row(const std::vector<float>& elements, int64_t outputs,
                                 int64_t inputs) {
  IntegerWeight w{std::vector<int8_t>(elements.size()), {}, outputs, inputs, inputs};
  for (int64_t row = 0; row < outputs; ++row) {
    const size_t first = static_cast<size_t>(row * inputs);
    float largest = 0;
    for (size_t k = 0; k < static_cast<size_t>(inputs); ++k)
      largest = std::max(largest, std::abs(elements[first + k]));
    const float scale = largest / 127;
    w.scales.push_back(std::isnormal(scale) ? scale : 1);
    for (size_t k = 0; k < static_cast<size_t>(inputs); ++k)
      w.integers[first + k] = static_cast<int8_t>(
          std::clamp(std::nearbyint(elements[first + k] / w.scales.back()), -127.0f, 127.0f));
  }
  return w;
}

std::span<const Row> rounded_rows() { return rounding::rows; }

}  // namespace taper::delegates::xnnpack
