#include "taper/exporter/passes/quantized_values.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/call.h"
#include "taper/kernels/quantized/byte_panels.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Value;

/// The only element of a constant tensor.
std::optional<double> constant_number(const Value* value, ConstantValues& constants) {
  if (value == nullptr || !constants.find(value)) return {};
  const eager::Tensor t = constants.at(value);
  if (!same(t.numel(), 1)) return {};
  return t.to(DType::f64).reshape({1}).item<double>();
}

/// The arguments that quantize_per_tensor, dequantize_per_tensor and their kin have in common.
template <const Operator& op>
std::optional<Quantization> numbers_of(const Node& node) {
  const ir::Call<op> call(node);
  const Dim zero_point = call.template get<"zero_point">(), low = call.template get<"quant_min">(),
            high = call.template get<"quant_max">();
  if (call.template get<"dtype">() != DType::i8 || !zero_point.is_constant() ||
      !low.is_constant() || !high.is_constant())
    return {};
  return Quantization{call.template get<"scale">(), zero_point.value(), low.value(), high.value()};
}
template <const Operator& op>
std::optional<Quantization> numbers_of(const Node& node, ConstantValues& constants) {
  const ir::Call<op> call(node);
  const Dim low = call.template get<"quant_min">(), high = call.template get<"quant_max">();
  const auto scale = constant_number(call.template get<"scale">(), constants),
             zero_point = constant_number(call.template get<"zero_point">(), constants);
  if (call.template get<"dtype">() != DType::i8 || !scale || !zero_point || !low.is_constant() ||
      !high.is_constant())
    return {};
  return Quantization{*scale, static_cast<int64_t>(*zero_point), low.value(), high.value()};
}

/// What integer operators can take: a positive scale, and numbers of i8.
std::optional<Quantization> if_usable(std::optional<Quantization> q) {
  if (!q || !(q->scale > 0) || q->scale > 3.4e38 || static_cast<float>(q->scale) == 0 ||
      std::isinf(static_cast<float>(1 / q->scale)) || q->zero_point < -128 || q->zero_point > 127 ||
      q->low < -128 || q->high > 127 || q->low > q->high)
    return {};
  return q;
}

const std::string& path_of(const ir::Graph& graph, const Value* value) {
  static const std::string none;
  for (const ir::Constant& c : graph.constants())
    if (c.value.get() == value) return c.path;
  return none;
}

}  // namespace

int64_t Quantization::integer(double x) const {
  const float inverse = static_cast<float>(1 / scale);
  const float q = std::nearbyint(static_cast<float>(x) * inverse) + static_cast<float>(zero_point);
  return static_cast<int64_t>(std::clamp(q, static_cast<float>(low), static_cast<float>(high)));
}

std::optional<Quantization> quantization_of(const Node& node, ConstantValues& constants) {
  const Value* input = nullptr;
  std::optional<Quantization> q;
  if (node.op == &ops::quantized_decomposed_quantize_per_tensor) {
    q = numbers_of<ops::quantized_decomposed_quantize_per_tensor>(node);
    input = ir::Call<ops::quantized_decomposed_quantize_per_tensor>(node).get<"input">();
  } else if (node.op == &ops::quantized_decomposed_quantize_per_tensor_tensor) {
    q = numbers_of<ops::quantized_decomposed_quantize_per_tensor_tensor>(node, constants);
    input = ir::Call<ops::quantized_decomposed_quantize_per_tensor_tensor>(node).get<"input">();
  }
  if (input == nullptr || input->type.dtype != DType::f32) return {};
  return if_usable(q);
}

std::optional<Dequantized> dequantized(const Value* value, ConstantValues& constants) {
  const Node* node = value->node;
  if (node == nullptr || value->type.dtype != DType::f32) return {};
  Value* integers = nullptr;
  std::optional<Quantization> q;
  if (node->op == &ops::quantized_decomposed_dequantize_per_tensor) {
    q = numbers_of<ops::quantized_decomposed_dequantize_per_tensor>(*node);
    integers = ir::Call<ops::quantized_decomposed_dequantize_per_tensor>(*node).get<"input">();
  } else if (node->op == &ops::quantized_decomposed_dequantize_per_tensor_tensor) {
    q = numbers_of<ops::quantized_decomposed_dequantize_per_tensor_tensor>(*node, constants);
    integers =
        ir::Call<ops::quantized_decomposed_dequantize_per_tensor_tensor>(*node).get<"input">();
  }
  q = if_usable(q);
  if (!q) return {};
  return Dequantized{integers, *q};
}

std::optional<QuantizedWeight> quantized_weight(const ir::Graph& graph, const Value* value,
                                                int axis, ConstantValues& constants,
                                                std::string& why) {
  const auto decline = [&](const char* reason) {
    why = reason;
    return std::optional<QuantizedWeight>();
  };
  using PerChannel = ir::Call<ops::quantized_decomposed_dequantize_per_channel>;
  const Value* integers = nullptr;
  eager::Tensor scales;
  const Node* node = value->node;
  if (node != nullptr && node->op == &ops::quantized_decomposed_dequantize_per_channel) {
    const PerChannel call(*node);
    integers = call.get<"input">();
    const Value *scale = call.get<"scales">(), *zeros = call.get<"zero_points">();
    if (!same(call.get<"axis">(), axis))
      return decline("its weight has scales along another dimension than that of the outputs");
    if (!constants.find(scale) || (zeros != nullptr && !constants.find(zeros)))
      return decline("the scales of its weight are no constants");
    if (zeros != nullptr)
      for (const int64_t zero : constants.at(zeros).to(DType::i64).to_vector<int64_t>())
        if (zero != 0) return decline("its weight has zero points other than 0");
    scales = constants.at(scale).to(DType::f32);
  } else if (const auto one = dequantized(value, constants); one.has_value()) {
    if (one->numbers.zero_point != 0) return decline("its weight has a zero point other than 0");
    integers = one->integers;
    if (integers->type.rank <= axis) return decline("its weight has too few dimensions");
    scales = eager::full({integers->type.sizes[axis]}, one->numbers.scale);
  } else {
    return decline("its weight is not de-quantized from i8");
  }
  if (integers->type.dtype != DType::i8 || !constants.find(integers))
    return decline("its weight is no constant of i8");
  QuantizedWeight w;
  const eager::Tensor t = constants.at(integers);
  for (const Dim& size : t.sizes()) w.sizes.push_back(size.value());
  w.integers = t.to_vector<int8_t>(), w.scales = scales.to_vector<float>();
  w.path = path_of(graph, integers);
  for (const float s : w.scales)
    if (!(s > 0) || std::isinf(s)) return decline("a scale of its weight is not above zero");
  return w;
}

size_t place_in_byte_panels(int64_t channel, int64_t k, int64_t of_group, int64_t depth) {
  using quantized::BytePanels;
  const int64_t row = channel % of_group;
  const int64_t panel =
      channel / of_group * BytePanels::panels_of(of_group) + row / BytePanels::rows;
  const int64_t vector = panel * BytePanels::vectors_of(depth) + k / BytePanels::vector;
  return static_cast<size_t>(vector * BytePanels::vector_bytes +
                             row % BytePanels::rows * BytePanels::vector + k % BytePanels::vector);
}

std::shared_ptr<const ir::Payload> byte_panels(const std::vector<int8_t>& integers,
                                               int64_t channels, int64_t depth, int64_t groups) {
  using quantized::BytePanels;
  const int64_t of_group = channels / groups, panels = groups * BytePanels::panels_of(of_group),
                vectors = BytePanels::vectors_of(depth);
  std::vector<int8_t> packed(static_cast<size_t>(panels * vectors * BytePanels::vector_bytes));
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t k = 0; k < depth; ++k)
      packed[place_in_byte_panels(c, k, of_group, depth)] =
          integers[static_cast<size_t>(c * depth + k)];
  return ir::Payload::from(packed, {panels, vectors, BytePanels::rows, BytePanels::vector});
}

std::optional<std::vector<int32_t>> byte_offsets(const QuantizedWeight& weight,
                                                 const std::vector<float>& bias,
                                                 double input_scale) {
  const size_t channels = weight.scales.size(),
               depth = channels == 0 ? 0 : weight.integers.size() / channels;
  std::vector<int32_t> offsets(2 * channels);
  for (size_t c = 0; c < channels; ++c) {
    if (!bias.empty()) {
      const float scale = static_cast<float>(input_scale) * weight.scales[c];
      const float rounded = std::nearbyint(bias[c] / scale);
      if (!(std::fabs(rounded) < 2147483648.0f)) return {};
      offsets[c] = static_cast<int32_t>(rounded);
    }
    uint32_t sum = 0;
    for (size_t k = 0; k < depth; ++k) sum += static_cast<uint32_t>(weight.integers[c * depth + k]);
    offsets[channels + c] = static_cast<int32_t>(sum);
  }
  return offsets;
}

}  // namespace taper::passes
