// Rows of static 8-bit operators. They compute what the kernels of kernels/quantized compute, bit
// for bit. A mean may be one step away where two results are equally near.
#include <algorithm>
#include <cmath>
#include <limits>

#include "taper/delegates/xnnpack/compile/arguments.h"
#include "taper/delegates/xnnpack/compile/scales.h"
#include "taper/delegates/xnnpack/compile/table.h"
#include "taper/exporter/base/error.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/passes/quantized_values.h"

namespace taper::delegates::xnnpack {
namespace integers {
namespace {

using blob::Function, blob::Kind;
using ir::Call, ir::Node, ir::Value;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Bounds of the result as numbers, if the range is not all of i8.
template <const Operator& op>
std::vector<float> bounds_of(const Call<op>& c) {
  const auto& range = c.template get<"range">();
  const int64_t low = range[0].value(), high = range[1].value();
  if (low == -128 && high == 127) return {};
  const auto number = [&](int64_t q) {
    const int64_t zero_point = c.template get<"output_zero_point">().value();
    return static_cast<float>(c.template get<"output_scale">()) *
           static_cast<float>(q - zero_point);
  };
  return {low == -128 ? -infinity : number(low), high == 127 ? infinity : number(high)};
}
template <const Operator& op>
std::string refuses_range(const Call<op>& c) {
  const auto& range = c.template get<"range">();
  return range[0].value() < range[1].value() ? "" : "its range is one number";
}

/// The library multiplies sums with a factor, and takes these.
std::string refuses_factor(double factor, double least, double most) {
  return factor >= least && factor < most ? "" : "its scales are too far apart";
}

// ---- products ----

struct Weights {
  std::vector<int8_t> integers;  ///< (channels, depth)
  std::vector<float> scales;
  std::vector<int32_t> bias;
  int64_t channels, depth;
};

/// The weight of panels (kernels/operators.def): those of a group begin with a panel of their own.
template <const Operator& op>
Weights weights_of(Lowering& out, const Call<op>& c, int64_t depth, int64_t groups) {
  Weights w;
  w.scales = out.elements(c.template get<"weight_scales">()).template to_vector<float>();
  w.channels = static_cast<int64_t>(w.scales.size()), w.depth = depth;
  const auto offsets = out.elements(c.template get<"offsets">()).template to_vector<int32_t>();
  w.bias.assign(offsets.begin(), offsets.begin() + w.channels);
  const auto packed = out.elements(c.template get<"weight">()).template to_vector<int8_t>();
  const int64_t of_group = w.channels / groups;
  w.integers.resize(static_cast<size_t>(w.channels * depth));
  for (int64_t channel = 0; channel < w.channels; ++channel)
    for (int64_t k = 0; k < depth; ++k)
      w.integers[static_cast<size_t>(channel * depth + k)] =
          packed[passes::place_in_byte_panels(channel, k, of_group, depth)];
  return w;
}

template <const Operator& op>
std::string refuses_product(const Node& node) {
  const Call<op> c(node);
  for (const Value* v :
       {c.template get<"weight">(), c.template get<"weight_scales">(), c.template get<"offsets">()})
    if (v->origin != Value::Origin::constant) return "a weight is no constant";
  return refuses_range(c);
}

std::string refuses_convolution(const Node& node) {
  const Call<ops::taper_conv2d_q8> c(node);
  const auto window = c.get<"kernel_size">();
  std::string reason;
  const Dim groups = c.get<"groups">();
  if (groups.value() > 1 && proves_equal(groups, c.get<"input">()->type.sizes[3]))
    reason = refuses_depthwise_window(window[0].value() * window[1].value());
  return reason.empty() ? refuses_product<ops::taper_conv2d_q8>(node) : reason;
}

/// Adds the node with its weights. `filter_sizes` are those of the filter in the library's order.
template <const Operator& op>
void add_product(Lowering& out, const Node& node, const Call<op>& c, Kind kind, const Weights& w,
                 std::vector<int64_t> filter_sizes, uint8_t channel, std::vector<int64_t> numbers) {
  const float input = static_cast<float>(c.template get<"input_scale">());
  const float output = static_cast<float>(c.template get<"output_scale">());
  for (const float scale : w.scales)
    if (!(input * scale / output < 256))
      throw ExportError("xnnpack: " + ir::describe(node) +
                        ": the scale of its result is too small for those of its input and its "
                        "weight; calibrate with other data, or leave the node as float");
  std::vector<float> bias_scales = w.scales;
  for (float& s : bias_scales) s *= input;
  const Ref filter = out.constant(w.integers, std::move(filter_sizes)),
            bias = out.constant(w.bias, {w.channels});
  out.give_scales(filter, 8, out.constant(w.scales, {w.channels}), channel);
  out.give_scales(bias, 32, out.constant(bias_scales, {w.channels}), 0);
  out.define(node.result(),
             out.add(kind, Function::none, {out.ref(c.template get<"input">()), filter, bias},
                     std::move(numbers), bounds_of(c)));
}

void lower_convolution(Lowering& out, const Node& node) {
  const Call<ops::taper_conv2d_q8> c(node);
  const auto list = [](const std::vector<Dim>& dims) {
    return std::vector<int64_t>{dims[0].value(), dims[1].value()};
  };
  const std::vector<int64_t> window = list(c.get<"kernel_size">());
  const int64_t groups = c.get<"groups">().value(),
                inputs = c.get<"input">()->type.sizes[3].value() / groups,
                outputs = node.result()->type.sizes[3].value() / groups;
  const bool is_depthwise = groups > 1 && inputs == 1 && outputs == 1;
  Weights w = weights_of(out, c, window[0] * window[1] * inputs, is_depthwise ? 1 : groups);
  std::vector<int64_t> numbers;
  for (const auto& dims : {c.get<"stride">(), c.get<"padding">(), c.get<"dilation">()})
    for (const int64_t n : list(dims)) numbers.push_back(n);
  if (!is_depthwise) {
    numbers.push_back(groups);
    return add_product(out, node, c, Kind::convolution, w,
                       {w.channels, window[0], window[1], inputs}, 0, numbers);
  }
  std::vector<int8_t> turned(w.integers.size());
  for (int64_t channel = 0; channel < w.channels; ++channel)
    for (int64_t k = 0; k < w.depth; ++k)
      turned[static_cast<size_t>(k * w.channels + channel)] =
          w.integers[static_cast<size_t>(channel * w.depth + k)];
  w.integers = std::move(turned);
  add_product(out, node, c, Kind::depthwise, w, {1, window[0], window[1], w.channels}, 3, numbers);
}

void lower_linear(Lowering& out, const Node& node) {
  const Call<ops::taper_linear_q8> c(node);
  const Value& x = *c.get<"input">();
  const Weights w = weights_of(out, c, x.type.sizes[x.type.rank - 1].value(), 1);
  add_product(out, node, c, Kind::fully_connected, w, {w.channels, w.depth}, 0, {});
}

// ---- sums, products of two tensors, averages ----

template <const Operator& op>
std::string refuses_sum(const Node& node) {
  const Call<op> c(node);
  const double output = c.template get<"output_scale">();
  for (const double scale : {c.template get<"self_scale">(), c.template get<"other_scale">()})
    if (const std::string why = refuses_factor(scale / output, 0x1p-10, 0x1p8); !why.empty())
      return why;
  return refuses_range(c);
}
std::string refuses_multiplication(const Node& node) {
  const Call<ops::taper_mul_q8> c(node);
  const std::string why = refuses_factor(
      c.get<"self_scale">() * c.get<"other_scale">() / c.get<"output_scale">(), 0x1p-16, 0x1p8);
  return why.empty() ? refuses_range(c) : why;
}
template <const Operator& op, Function function>
void lower_binary(Lowering& out, const Node& node) {
  const Call<op> c(node);
  out.define(node.result(),
             out.add(Kind::binary, function,
                     {out.ref(c.template get<"self">()), out.ref(c.template get<"other">())}, {},
                     bounds_of(c)));
}

template <const Operator& op>
std::vector<int64_t> window_of(const Call<op>& c) {
  std::vector<int64_t> numbers;
  const std::vector<Dim>& size = c.template get<"kernel_size">();
  const std::vector<Dim>& stride = c.template get<"stride">();
  for (const auto* dims : {&size, stride.empty() ? &size : &stride, &c.template get<"padding">()})
    for (const size_t d : {0u, 1u}) numbers.push_back((*dims)[dims->size() == 1 ? 0 : d].value());
  return numbers;
}
template <const Operator& op>
std::string refuses_window(const Call<op>& c) {
  const std::vector<int64_t> w = window_of(c);
  if (c.template get<"ceil_mode">()) return "ceil_mode is not taken";
  if (w[0] * w[1] == 1) return "its window is one element";
  for (size_t d = 0; d < 2; ++d)
    if (w[2 + d] > w[d] || w[4 + d] >= w[d])
      return "its stride or padding is larger than its window";
  return "";
}
/// The library averages integers over whole images only.
std::string refuses_average(const Node& node) {
  const Call<ops::taper_avg_pool2d_q8> c(node);
  const std::vector<int64_t> w = window_of(c);
  const Value& x = *c.get<"self">();
  for (size_t d = 0; d < 2; ++d)
    if (!proves_equal(x.type.sizes[d + 1], Dim(w[d])) || w[4 + d] > 0)
      return "its window is not the whole image";
  if (c.get<"divisor_override">() != nullptr) return "divisor_override is not taken";
  if (!bounds_of(c).empty()) return "it ends with a clamp";
  return refuses_factor(c.get<"input_scale">() / c.get<"output_scale">(), 0x1p-8, 0x1p7);
}
void lower_average(Lowering& out, const Node& node) {
  const Call<ops::taper_avg_pool2d_q8> c(node);
  constexpr int64_t keeps = 1;
  out.define(node.result(),
             out.add(Kind::mean, Function::none, {out.ref(c.get<"self">())}, {keeps, 1, 2}));
}

std::string refuses_max_pool(const Node& node) {
  return refuses_window(Call<ops::taper_max_pool2d>(node));
}
void lower_max_pool(Lowering& out, const Node& node) {
  const Call<ops::taper_max_pool2d> c(node);
  std::vector<int64_t> numbers = window_of(c);
  const std::vector<Dim>& dilation = c.get<"dilation">();
  for (const size_t d : {0u, 1u}) numbers.push_back(dilation[dilation.size() == 1 ? 0 : d].value());
  out.define(node.result(),
             out.add(Kind::max_pool, Function::none, {out.ref(c.get<"self">())}, numbers));
}

// ---- between f32 and integers ----

template <const Operator& op>
std::string refuses_conversion(const Node& node) {
  const Call<op> c(node);
  const bool is_all = proves_equal(c.template get<"quant_min">(), -128) &&
                      proves_equal(c.template get<"quant_max">(), 127);
  return is_all && c.template get<"zero_point">().is_constant() ? "" : "its range is not all of i8";
}
template <const Operator& op>
void lower_conversion(Lowering& out, const Node& node) {
  out.define(node.result(), out.add(Kind::unary, Function::convert,
                                    {out.ref(Call<op>(node).template get<"input">())}));
}

constexpr bool heavy = true;

const Row rows[] = {
    {&ops::taper_conv2d_q8, refuses_convolution, lower_convolution, heavy},
    {&ops::taper_linear_q8, refuses_product<ops::taper_linear_q8>, lower_linear, heavy},
    {&ops::taper_add_q8, refuses_sum<ops::taper_add_q8>,
     lower_binary<ops::taper_add_q8, Function::add>},
    {&ops::taper_sub_q8, refuses_sum<ops::taper_sub_q8>,
     lower_binary<ops::taper_sub_q8, Function::subtract>},
    {&ops::taper_mul_q8, refuses_multiplication,
     lower_binary<ops::taper_mul_q8, Function::multiply>},
    {&ops::taper_avg_pool2d_q8, refuses_average, lower_average},
    {&ops::taper_max_pool2d, refuses_max_pool, lower_max_pool},
    {&ops::quantized_decomposed_quantize_per_tensor,
     refuses_conversion<ops::quantized_decomposed_quantize_per_tensor>,
     lower_conversion<ops::quantized_decomposed_quantize_per_tensor>},
    {&ops::quantized_decomposed_dequantize_per_tensor,
     refuses_conversion<ops::quantized_decomposed_dequantize_per_tensor>,
     lower_conversion<ops::quantized_decomposed_dequantize_per_tensor>},
};

}  // namespace
}  // namespace integers

std::span<const Row> integer_rows() { return integers::rows; }

}  // namespace taper::delegates::xnnpack
