// fuse_quantized: convolutions and products with constants.
#include <array>

#include "taper/exporter/passes/integer_fuser.h"
#include "taper/exporter/passes/transposed_weights.h"

namespace taper::passes {
namespace {

using ir::Argument;
using ir::Node;
using ir::Value;

std::vector<Dim> for_two_dims(const std::vector<Dim>& list) {
  return list.size() == 1 ? std::vector<Dim>{list[0], list[0]} : list;
}

/// How many parts the channels of a convolution have.
int64_t parts_of(const QuantizedWeight& w, int64_t groups) {
  const bool is_depthwise = w.sizes[0] == groups && w.sizes[1] == 1;
  return is_depthwise ? 1 : groups;
}

/// (channels, inputs, taps) becomes (channels, taps, inputs).
void turn(QuantizedWeight& w) {
  const std::vector<int8_t> from = w.integers;
  const auto channels = w.sizes[0], inputs = w.sizes[1],
             depth = channels == 0 ? 0 : static_cast<int64_t>(from.size()) / channels,
             taps = inputs == 0 ? 0 : depth / inputs;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < inputs; ++i)
      for (int64_t t = 0; t < taps; ++t)
        w.integers[static_cast<size_t>(c * depth + t * inputs + i)] =
            from[static_cast<size_t>(c * depth + i * taps + t)];
}

}  // namespace

/// Stride, padding, dilation and output_padding of height and width.
struct IntegerFuser::Transposed {
  std::vector<Dim> stride, padding, dilation, output_padding;

  TransposedAxis axis(size_t i, int64_t kernel) const {
    return TransposedAxis::of(kernel, stride[i].value(), padding[i].value(), dilation[i].value(),
                              output_padding[i].value());
  }
};

std::optional<QuantizedWeight> IntegerFuser::weight_of(const Node& node, const Value* weight,
                                                       int axis) {
  std::string why;
  auto w = quantized_weight(graph_, weight, axis, constants_, why);
  if (!w) decline(node, why);
  return w;
}

std::optional<std::vector<float>> IntegerFuser::bias_of(const Node& node, const Value* bias,
                                                        size_t channels) {
  if (bias == nullptr) return std::vector<float>();
  if (!constants_.find(bias)) return decline(node, "its bias is no constant"), std::nullopt;
  if (bias->type.rank != 1) return decline(node, "its bias is no vector"), std::nullopt;
  auto b = constants_.at(bias).to(DType::f32).to_vector<float>();
  if (b.size() != channels)
    return decline(node, "its bias has not one element for each output"), std::nullopt;
  return b;
}

std::optional<IntegerFuser::Weights> IntegerFuser::packed(const Node& node,
                                                          const QuantizedWeight& w,
                                                          const std::vector<float>& bias,
                                                          double input_scale, int64_t parts) {
  const auto offsets = byte_offsets(w, bias, input_scale);
  if (!offsets)
    return decline(node,
                   "its bias does not fit into 32 bits, in units of the input's scale "
                   "times the weight's"),
           std::nullopt;
  const auto channels = static_cast<int64_t>(w.scales.size());
  const int64_t depth = channels == 0 ? 0 : static_cast<int64_t>(w.integers.size()) / channels;
  Value* panels = graph_.add_constant(w.path, byte_panels(w.integers, channels, depth, parts));
  return Weights{panels, constant(w.path, ".scales", w.scales, {channels}),
                 constant(w.path, ".offsets", *offsets, {2, channels})};
}

Value* IntegerFuser::convolution(Value& value, const Quantization& to) {
  const Node& node = *value.node;
  const ir::Call<ops::convolution> conv(node);
  const int rank = value.type.rank;
  if (rank != 3 && rank != 4) return decline(node, "it has three spatial dimensions");
  const std::vector<Dim>*stride = &conv.get<"stride">(), *padding = &conv.get<"padding">(),
        *dilation = &conv.get<"dilation">();
  if (!are_numbers(*stride) || !are_numbers(*padding) || !are_numbers(*dilation) ||
      !conv.get<"groups">().is_constant())
    return decline(node, "its stride, padding, dilation or groups are no numbers");
  if (!is_only_here(value)) return nullptr;
  const auto x = operand(conv.get<"input">());
  if (!x) return decline(node, "its input is not de-quantized from i8");
  // a line is an image with one row
  const auto spatial = [&](const std::vector<Dim>& list, int64_t of_row) {
    return rank == 4 ? for_two_dims(list) : std::vector<Dim>{of_row, list[0]};
  };
  const std::vector<Dim> strides = spatial(*stride, 1), paddings = spatial(*padding, 0),
                         dilations = spatial(*dilation, 1);
  const int64_t groups = conv.get<"groups">().value();
  if (conv.get<"transposed">()) {
    const std::vector<Dim>& more = conv.get<"output_padding">();
    if (!are_numbers(more)) return decline(node, "its output_padding is no number");
    return transposed(value, *x, to, {strides, paddings, dilations, spatial(more, 0)}, groups);
  }
  auto w = weight_of(node, conv.get<"weight">(), 0);
  if (!w) return nullptr;
  const auto bias = bias_of(node, conv.get<"bias">(), w->scales.size());
  if (!bias) return nullptr;
  turn(*w);
  const auto constants = packed(node, *w, *bias, x->numbers.scale, parts_of(*w, groups));
  if (!constants) return nullptr;
  std::vector<Dim> kernel;
  for (size_t i = 2; i < w->sizes.size(); ++i) kernel.emplace_back(w->sizes[i]);
  Value* image = conv2d(node, images_.image(at_, x->integers), *constants, spatial(kernel, 1),
                        strides, paddings, dilations, groups, x->numbers, to);
  return did(node, images_.seen_first(at_, image, rank));
}

Value* IntegerFuser::conv2d(const Node& node, Value* image, const Weights& w,
                            std::vector<Dim> kernel, std::vector<Dim> stride,
                            std::vector<Dim> padding, std::vector<Dim> dilation, int64_t groups,
                            const Quantization& from, const Quantization& to) {
  return insert(node, ops::taper_conv2d_q8,
                {image, w.panels, w.scales, w.offsets, std::move(kernel), std::move(stride),
                 std::move(padding), std::move(dilation), Dim(groups), from.scale,
                 Dim(from.zero_point), to.scale, Dim(to.zero_point), range_of(to)});
}

Value* IntegerFuser::transposed(Value& value, const Dequantized& x, const Quantization& to,
                                const Transposed& how, int64_t groups) {
  const Node& node = *value.node;
  const ir::Call<ops::convolution> conv(node);
  const auto w = weight_of(node, conv.get<"weight">(), 1);
  if (!w) return nullptr;
  const int64_t outputs = w->sizes[1], channels = groups * outputs;
  const auto bias = bias_of(node, conv.get<"bias">(), static_cast<size_t>(channels));
  if (!bias) return nullptr;
  const int rank = value.type.rank;
  const std::array<TransposedAxis, 2> axes = {how.axis(0, rank == 4 ? w->sizes[2] : 1),
                                              how.axis(1, w->sizes.back())};
  const auto both = [&](auto member) { return std::vector<Dim>{axes[0].*member, axes[1].*member}; };
  // groups cannot share an input's channels, so each phase is a convolution of its own
  const int64_t phases = axes[0].stride * axes[1].stride, at_once = groups == 1 ? phases : 1;
  std::vector<Value*> parts;
  for (int64_t phase = 0; phase < phases; phase += at_once) {
    QuantizedWeight of = weight_of_phases(*w, axes, groups, phase, at_once);
    if (at_once != phases && !of.path.empty()) of.path += "." + std::to_string(phase);
    std::vector<float> biases;
    for (int64_t i = 0; i < at_once; ++i) biases.insert(biases.end(), bias->begin(), bias->end());
    const auto constants = packed(node, of, biases, x.numbers.scale, parts_of(of, groups));
    if (!constants) return nullptr;
    parts.push_back(conv2d(node, images_.image(at_, x.integers), *constants,
                           both(&TransposedAxis::kernel), dims({1, 1}),
                           both(&TransposedAxis::padding), both(&TransposedAxis::dilation), groups,
                           x.numbers, to));
  }
  Value* image = parts.size() == 1 ? parts[0] : insert(node, ops::cat, {parts, Dim(3)});
  const Dim batch = image->type.sizes[0];
  Dim sizes[2] = {image->type.sizes[1], image->type.sizes[2]};
  if (phases > 1) {
    const Dim rows = axes[0].stride, columns = axes[1].stride;
    image = insert(node, ops::view,
                   {image, std::vector<Dim>{batch, sizes[0], sizes[1], rows, columns, channels}});
    image = insert(node, ops::permute, {image, dims({0, 1, 3, 2, 4, 5})});
    image = insert(node, ops::clone, {image});
    sizes[0] = sizes[0] * rows, sizes[1] = sizes[1] * columns;
    image = insert(node, ops::view, {image, std::vector<Dim>{batch, sizes[0], sizes[1], channels}});
  }
  for (int d = 0; d < 2; ++d) {
    const auto i = static_cast<size_t>(d);
    const Dim size = rank == 4 ? value.type.sizes[2 + d] : d == 0 ? Dim(1) : value.type.sizes[2];
    if (axes[i].start != 0 || !same(size, sizes[d]))
      image = insert(node, ops::slice_Tensor,
                     {image, Dim(1 + d), Dim(axes[i].start), Dim(axes[i].start) + size, Dim(1)});
  }
  return did(node, images_.seen_first(at_, image, rank));
}

Value* IntegerFuser::product(Value& value, const Quantization& to) {
  const Node& node = *value.node;
  Value *input = nullptr, *weight = nullptr, *bias = nullptr;
  if (node.op == &ops::linear) {
    const ir::Call<ops::linear> call(node);
    input = call.get<"input">(), weight = call.get<"weight">(), bias = call.get<"bias">();
  } else if (node.op == &ops::mm) {
    const ir::Call<ops::mm> call(node);
    input = call.get<"self">(), weight = transposed_matrices(call.get<"mat2">());
  } else {
    const ir::Call<ops::addmm> call(node);
    const Scalar *alpha = call.get<"alpha">(), *beta = call.get<"beta">();
    if (alpha == nullptr || beta == nullptr || alpha->to<double>() != 1 || beta->to<double>() != 1)
      return decline(node, "its alpha or beta is not 1");
    input = call.get<"mat1">(), weight = transposed_matrices(call.get<"mat2">());
    bias = call.get<"self">();
  }
  if (weight == nullptr || weight->type.rank != 2)
    return decline(node, "it does not multiply with a transposed constant");
  if (!is_only_here(value)) return nullptr;
  const auto x = operand(input);
  if (!x) return decline(node, "its input is not de-quantized from i8");
  const auto w = weight_of(node, weight, 0);
  if (!w) return nullptr;
  const auto b = bias_of(node, bias, w->scales.size());
  if (!b) return nullptr;
  const auto c = packed(node, *w, *b, x->numbers.scale, 1);
  if (!c) return nullptr;
  return did(node, insert(node, ops::taper_linear_q8,
                          {images_.dense(at_, x->integers), c->panels, c->scales, c->offsets,
                           x->numbers.scale, Dim(x->numbers.zero_point), to.scale,
                           Dim(to.zero_point), range_of(to)}));
}

}  // namespace taper::passes
