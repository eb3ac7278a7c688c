// Integer operators of what stands between dequantize and quantize.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_set>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/passes/average_windows.h"
#include "taper/exporter/passes/function_tables.h"
#include "taper/exporter/passes/images.h"
#include "taper/exporter/passes/replace.h"
#include "taper/exporter/passes/transposed_weights.h"

namespace taper::passes {
namespace {

using ir::Argument;
using ir::Node;
using ir::Value;

std::vector<Dim> dims(std::initializer_list<int64_t> list) { return {list.begin(), list.end()}; }
std::vector<Dim> range_of(const Quantization& q) { return {q.low, q.high}; }
std::vector<Dim> for_two_dims(const std::vector<Dim>& list) {
  return list.size() == 1 ? std::vector<Dim>{list[0], list[0]} : list;
}
bool are_numbers(const std::vector<Dim>& list) {
  return std::ranges::all_of(list, [](const Dim& d) { return d.is_constant(); });
}

class IntegerFuser {
 public:
  IntegerFuser(ir::Graph& graph, PassContext& context)
      : graph_(graph), context_(context), constants_(graph), images_(graph) {}

  int run() {
    std::vector<Node*> quantizing;
    for (Node& node : graph_.nodes())
      if (quantization_of(node, constants_)) quantizing.push_back(&node);
    if (quantizing.empty()) return 0;
    merge_common_subexpressions(graph_, context_);  // one node for each way to quantize a value
    quantizing.clear();
    for (Node& node : graph_.nodes())
      if (quantization_of(node, constants_)) quantizing.push_back(&node);
    int fused = 0;
    for (Node* node : quantizing) fused += fuse(*node);
    remove_dead_code(graph_, context_);  // of what was tried, too
    for (const Node& node : graph_.nodes()) note_if_float(node);
    return fused;
  }

 private:
  /// Makes integers of what `node` quantizes.
  bool fuse(Node& node) {
    at_ = &node;
    why_.clear(), source_ = nullptr;
    Value* const input = std::get<Value*>(node.arguments[0]);
    if (input->node == nullptr) return false;
    Value* integers = quantized(input, *quantization_of(node, constants_));
    if (integers == nullptr) {
      if (!why_.empty()) context_.declined(source_ == nullptr ? node : *source_, why_);
      return false;
    }
    images_.replace(node.result(), integers, &node);
    return true;
  }

  /// Every operator that computes in f32 although it reads a de-quantized value is named once.
  void note_if_float(const Node& node) {
    if (quantization_of(node, constants_) || node.op->category == Category::view) return;
    bool reads_integers = false;
    ir::for_each_value(node, [&](const Value* v) {
      reads_integers = reads_integers || dequantized(v, constants_).has_value();
    });
    if (reads_integers && !declined_.contains(&node))
      context_.declined(node, "it computes in f32, because nothing quantizes its result");
  }

  Value* decline(const Node& node, std::string why) {
    if (why_.empty()) {
      why_ = std::move(why), source_ = &node;
      declined_.insert(&node);
    }
    return nullptr;
  }
  Value* insert(const Node& like, const Operator& op, std::vector<Argument> arguments) {
    return ir::insert_before(graph_, at_, op, std::move(arguments), like.location, like.module)
        ->result();
  }
  template <class T>
  Value* constant(const std::string& path, const char* what, const std::vector<T>& elements,
                  std::vector<int64_t> sizes) {
    return graph_.add_constant(path.empty() ? path : path + what,
                               ir::Payload::from(elements, std::move(sizes)));
  }

  // ---- the recursion ----

  /// The integers of `value`, quantized with `to`; nullptr: they cannot be computed as such, and
  /// `why_` may say why.
  Value* quantized(Value* value, const Quantization& to) {
    if (value->node == nullptr) return nullptr;
    const auto key = std::make_pair(value, to);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    Value* integers = computed(value, to);
    if (integers != nullptr) known_[key] = integers;
    return integers;
  }
  /// Whether the integers lie in the range. Those that the caller gives may be any.
  static bool has_range(const Dequantized& x, const Quantization& to) {
    const bool is_given = x.integers->node == nullptr;
    const int64_t low = is_given ? -128 : x.numbers.low, high = is_given ? 127 : x.numbers.high;
    return to.low <= low && high <= to.high;
  }
  Value* computed(Value* value, const Quantization& to) {
    const Node& node = *value->node;
    if (const auto same = dequantized(value, constants_);
        same && same->numbers.has_same_numbers(to) && has_range(*same, to))
      return same->integers;
    if (Value* clamped = clamp_producer(*value, to)) return clamped;
    if (const auto argument = functions_.argument_of(value)) {
      Value* table = constant("", "", functions_.table(value, *argument, to), {256});
      return images_.apply(at_, argument->integers, [&](Value* x) {
        return insert(node, ops::taper_lookup_q8, {x, table});
      });
    }
    if (Value* clamped = clamp(*value, to)) return clamped;
    if (Value* moved = move(*value, to)) return moved;
    if (node.op == &ops::convolution) return convolution(*value, to);
    if (node.op == &ops::linear || node.op == &ops::addmm || node.op == &ops::mm)
      return product(*value, to);
    if (node.op == &ops::add_Tensor || node.op == &ops::sub_Tensor || node.op == &ops::mul_Tensor)
      return binary(*value, to);
    if (node.op == &ops::avg_pool2d || node.op == &ops::avg_pool1d ||
        node.op == &ops::_adaptive_avg_pool2d || node.op == &ops::adaptive_avg_pool1d ||
        node.op == &ops::mean_dim)
      return average(*value, to);
    if (node.op == &ops::upsample_bilinear2d) return bilinear(*value, to);
    if (node.op == &ops::_softmax) return softmax(*value, to);
    if (node.op == &ops::bmm) return matrices(*value, to);
    if (reads_integers(node)) return decline(node, "there is no integer kernel of it");
    return nullptr;
  }
  bool reads_integers(const Node& node) {
    bool reads = false;
    ir::for_each_value(
        node, [&](const Value* v) { reads = reads || dequantized(v, constants_).has_value(); });
    return reads;
  }
  /// A result that an operator in f32 reads, too, would be computed twice.
  bool is_only_here(const Value& value) {
    if (has_one_reader(graph_, &value)) return true;
    const bool quantized_only = is_only_quantized(value);
    if (!quantized_only) decline(*value.node, "its result is read in f32, too");
    return quantized_only;
  }
  bool is_only_quantized(const Value& value) {
    return !graph_.is_returned(&value) && std::ranges::all_of(value.users, [&](const Node* user) {
      return quantization_of(*user, constants_).has_value();
    });
  }

  /// Integers that stand for `value` itself: de-quantized ones, perhaps moved or without the
  /// negative ones.
  std::optional<Dequantized> operand(Value* value) {
    const auto below = quantization_below(value);
    if (!below) return {};
    Value* integers = quantized(value, *below);
    if (integers == nullptr) return {};
    return Dequantized{integers, *below};
  }
  std::optional<Quantization> quantization_below(const Value* value) {
    while (value->node != nullptr) {
      if (const auto leaf = dequantized(value, constants_)) return leaf->numbers;
      const Node& node = *value->node;
      const bool keeps_numbers = node.op->category == Category::view || node.op == &ops::clone ||
                                 node.op == &ops::relu || node.op == &ops::max_pool2d ||
                                 node.op == &ops::max_pool2d_with_indices;
      if (!keeps_numbers) return {};
      value = std::get<Value*>(node.arguments[0]);
    }
    return {};
  }

  // ---- clamps become part of the range ----

  struct Clamp {
    Value* input;
    Quantization to;  ///< that of the result, with a smaller range
  };
  static std::optional<Clamp> clamp_of(const Node& node, Quantization to) {
    std::optional<double> low, high;
    Value* input = nullptr;
    const auto number = [](const Scalar* s) {
      return s == nullptr ? std::optional<double>() : std::optional<double>(s->to<double>());
    };
    if (node.op == &ops::relu) {
      input = ir::Call<ops::relu>(node).get<"self">(), low = 0.0;
    } else if (node.op == &ops::relu6) {
      input = ir::Call<ops::relu6>(node).get<"self">(), low = 0.0, high = 6.0;
    } else if (node.op == &ops::hardtanh) {
      const ir::Call<ops::hardtanh> call(node);
      input = call.get<"self">(), low = number(call.get<"min_val">());
      high = number(call.get<"max_val">());
      if (!low || !high) return {};
    } else if (node.op == &ops::clamp) {
      const ir::Call<ops::clamp> call(node);
      input = call.get<"self">(), low = number(call.get<"min">()), high = number(call.get<"max">());
    } else {
      return {};
    }
    if ((low && high && *low > *high) || (low && *low != *low) || (high && *high != *high))
      return {};
    if (low) to.low = to.integer(*low);
    if (high) to.high = std::max(to.low, to.integer(*high));
    return Clamp{input, to};
  }
  Value* clamp(Value& value, const Quantization& to) {
    const auto found = clamp_of(*value.node, to);
    return found && is_only_here(value) ? quantized(found->input, found->to) : nullptr;
  }
  /// A clamp behind the quantization of another operator's result, with the same scale: it becomes
  /// the range of that operator, if nothing else reads the result.
  Value* clamp_producer(Value& value, const Quantization& to) {
    const auto found = clamp_of(*value.node, to);
    if (!found || !has_one_reader(graph_, found->input) || !is_only_quantized(value))
      return nullptr;
    const auto input = dequantized(found->input, constants_);
    if (!input || !input->numbers.has_same_numbers(to) || !has_one_reader(graph_, input->integers))
      return nullptr;
    Value* const image = images_.known_image(input->integers);
    if (image != nullptr && !has_one_reader(graph_, image)) return nullptr;
    Node* producer = (image == nullptr ? input->integers : image)->node;
    const Operator* const ranged[] = {
        &ops::taper_conv2d_q8, &ops::taper_linear_q8,  &ops::taper_add_q8,
        &ops::taper_sub_q8,    &ops::taper_mul_q8,     &ops::taper_avg_pool2d_q8,
        &ops::taper_bmm_q8,    &ops::taper_softmax_q8, &ops::taper_upsample_bilinear2d_q8};
    if (producer == nullptr || std::ranges::find(ranged, producer->op) == std::end(ranged))
      return nullptr;
    const size_t last = producer->arguments.size() - 1;  // the range
    const auto range = std::get<std::vector<Dim>>(producer->arguments[last]);
    const int64_t low = std::max(range[0].value(), found->to.low),
                  high = std::min(range[1].value(), found->to.high);
    if (low > high) return nullptr;
    graph_.set_argument(producer, last, std::vector<Dim>{low, high});
    return input->integers;
  }

  // ---- moves ----

  /// The same elements at other places: the integers move.
  Value* move(Value& value, const Quantization& to) {
    const Node& node = *value.node;
    if (node.op->category == Category::view || node.op == &ops::clone) {
      Value* x = quantized(std::get<Value*>(node.arguments[0]), to);
      return x == nullptr ? nullptr : images_.view(at_, node, x);
    }
    if (node.op == &ops::constant_pad_nd) {
      const ir::Call<ops::constant_pad_nd> call(node);
      const Scalar* padding = call.get<"value">();
      Value* x = padding == nullptr ? nullptr : quantized(call.get<"self">(), to);
      return x == nullptr ? nullptr
                          : images_.pad(at_, node, x, Scalar(to.integer(padding->to<double>())));
    }
    if (node.op == &ops::max_pool2d || node.op == &ops::max_pool2d_with_indices) {
      Value* const self = std::get<Value*>(node.arguments[0]);
      if (&value != node.result() || self->type.rank != 4) return nullptr;
      Value* x = quantized(self, to);
      return x == nullptr ? nullptr : images_.max_pool(at_, node, x);
    }
    if (node.op == &ops::upsample_nearest2d || node.op == &ops::_upsample_nearest_exact2d) {
      Value* const self = std::get<Value*>(node.arguments[0]);
      if (!are_numbers(
              {self->type.sizes[2], self->type.sizes[3], value.type.sizes[2], value.type.sizes[3]}))
        return decline(node, "its sizes are no numbers");
      Value* x = quantized(self, to);
      return x == nullptr ? nullptr : images_.resize(at_, node, x);
    }
    const Operator* const copies[] = {&ops::flip, &ops::repeat, &ops::reflection_pad2d,
                                      &ops::replication_pad2d};
    if (std::ranges::find(copies, node.op) != std::end(copies)) {
      Value* x = quantized(std::get<Value*>(node.arguments[0]), to);
      if (x == nullptr) return nullptr;
      std::vector<Argument> arguments = node.arguments;
      arguments[0] = images_.dense(at_, x);
      return insert(node, *node.op, std::move(arguments));
    }
    if (node.op == &ops::cat) {
      const ir::Call<ops::cat> call(node);
      std::vector<Value*> parts;
      for (Value* part : call.get<"tensors">()) {
        Value* x = quantized(part, to);
        if (x == nullptr) return nullptr;
        parts.push_back(x);
      }
      return images_.cat(at_, node, parts, call.get<"dim">().value());
    }
    return nullptr;
  }

  // ---- products ----

  struct Weights {
    Value *panels, *scales, *offsets;
  };
  std::optional<QuantizedWeight> weight_of(const Node& node, const Value* weight, int axis) {
    std::string why;
    auto w = quantized_weight(graph_, weight, axis, constants_, why);
    if (!w) decline(node, why);
    return w;
  }
  /// The bias, which is empty where there is none.
  std::optional<std::vector<float>> bias_of(const Node& node, const Value* bias, size_t channels) {
    if (bias == nullptr) return std::vector<float>();
    if (!constants_.find(bias)) return decline(node, "its bias is no constant"), std::nullopt;
    if (bias->type.rank != 1) return decline(node, "its bias is no vector"), std::nullopt;
    auto b = constants_.at(bias).to(DType::f32).to_vector<float>();
    if (b.size() != channels)
      return decline(node, "its bias has not one element for each output"), std::nullopt;
    return b;
  }
  /// The constants of a product over i8. The weight is (channels, taps, inputs), and `parts` parts
  /// of the channels have panels of their own.
  std::optional<Weights> packed(const Node& node, const QuantizedWeight& w,
                                const std::vector<float>& bias, double input_scale, int64_t parts) {
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
  /// How many parts the channels of a convolution have.
  static int64_t parts_of(const QuantizedWeight& w, int64_t groups) {
    const bool is_depthwise = w.sizes[0] == groups && w.sizes[1] == 1;
    return is_depthwise ? 1 : groups;
  }
  /// (channels, inputs, taps) becomes (channels, taps, inputs).
  static void turn(QuantizedWeight& w) {
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

  Value* convolution(Value& value, const Quantization& to) {
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
  Value* conv2d(const Node& node, Value* image, const Weights& w, std::vector<Dim> kernel,
                std::vector<Dim> stride, std::vector<Dim> padding, std::vector<Dim> dilation,
                int64_t groups, const Quantization& from, const Quantization& to) {
    return insert(node, ops::taper_conv2d_q8,
                  {image, w.panels, w.scales, w.offsets, std::move(kernel), std::move(stride),
                   std::move(padding), std::move(dilation), Dim(groups), from.scale,
                   Dim(from.zero_point), to.scale, Dim(to.zero_point), range_of(to)});
  }

  /// Stride, padding, dilation and output_padding of height and width.
  struct Transposed {
    std::vector<Dim> stride, padding, dilation, output_padding;

    TransposedAxis axis(size_t i, int64_t kernel) const {
      return TransposedAxis::of(kernel, stride[i].value(), padding[i].value(), dilation[i].value(),
                                output_padding[i].value());
    }
  };
  /// Convolutions give the results of the phases as channels, which then become rows and columns.
  Value* transposed(Value& value, const Dequantized& x, const Quantization& to,
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
    const auto both = [&](auto member) {
      return std::vector<Dim>{axes[0].*member, axes[1].*member};
    };
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
                             both(&TransposedAxis::padding), both(&TransposedAxis::dilation),
                             groups, x.numbers, to));
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
      image =
          insert(node, ops::view, {image, std::vector<Dim>{batch, sizes[0], sizes[1], channels}});
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

  Value* product(Value& value, const Quantization& to) {
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
      if (alpha == nullptr || beta == nullptr || alpha->to<double>() != 1 ||
          beta->to<double>() != 1)
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

  // ---- elements ----

  Value* binary(Value& value, const Quantization& to) {
    const Node& node = *value.node;
    const bool adds = node.op == &ops::add_Tensor, subtracts = node.op == &ops::sub_Tensor;
    const Scalar* alpha = adds        ? ir::Call<ops::add_Tensor>(node).get<"alpha">()
                          : subtracts ? ir::Call<ops::sub_Tensor>(node).get<"alpha">()
                                      : nullptr;
    if ((adds || subtracts) && (alpha == nullptr || alpha->to<double>() != 1))
      return decline(node, "its alpha is not 1");
    if (!is_only_here(value)) return nullptr;
    const auto a = operand(std::get<Value*>(node.arguments[0])),
               b = operand(std::get<Value*>(node.arguments[1]));
    if (!a || !b) {
      if (a || b) decline(node, "only one of its operands is de-quantized from i8");
      return nullptr;
    }
    const Operator& op = adds        ? ops::taper_add_q8
                         : subtracts ? ops::taper_sub_q8
                                     : ops::taper_mul_q8;
    return did(node, images_.apply(at_, a->integers, b->integers, [&](Value* x, Value* y) {
      return insert(node, op,
                    {x, y, a->numbers.scale, Dim(a->numbers.zero_point), b->numbers.scale,
                     Dim(b->numbers.zero_point), to.scale, Dim(to.zero_point), range_of(to)});
    }));
  }

  Value* average(Value& value, const Quantization& to) {
    const Node& node = *value.node;
    Value* const self = std::get<Value*>(node.arguments[0]);
    std::string why;
    const auto w = average_windows(node, self->type, why);
    if (!w) return decline(node, std::move(why));
    if (!is_only_here(value)) return nullptr;
    const auto x = operand(self);
    if (!x) return decline(node, "its input is not de-quantized from i8");
    Value* image = w->of_rows
                       ? insert(node, ops::unsqueeze, {images_.dense(at_, x->integers), Dim(1)})
                       : images_.image(at_, x->integers);
    image = insert(
        node, ops::taper_avg_pool2d_q8,
        {image, w->kernel, w->stride, w->padding, w->ceil_mode, w->counts_padding, w->divisor,
         x->numbers.scale, Dim(x->numbers.zero_point), to.scale, Dim(to.zero_point), range_of(to)});
    if (w->keeps && !w->of_rows) return did(node, images_.seen_first(at_, image, self->type.rank));
    const ir::Type& type = value.type;
    return did(node, insert(node, ops::view,
                            {image, std::vector<Dim>(type.sizes, type.sizes + type.rank)}));
  }

  Value* bilinear(Value& value, const Quantization& to) {
    const Node& node = *value.node;
    const ir::Call<ops::upsample_bilinear2d> call(node);
    if (!is_only_here(value)) return nullptr;
    const auto x = operand(call.get<"self">());
    if (!x) return decline(node, "its input is not de-quantized from i8");
    std::vector<Argument> arguments = node.arguments;
    arguments[0] = images_.image(at_, x->integers);
    append_numbers(arguments, x->numbers, to);
    Value* image = insert(node, ops::taper_upsample_bilinear2d_q8, std::move(arguments));
    return did(node, images_.seen_first(at_, image, 4));
  }
  static void append_numbers(std::vector<Argument>& arguments, const Quantization& from,
                             const Quantization& to) {
    for (const Quantization* q : {&from, &to}) {
      arguments.emplace_back(q->scale);
      arguments.emplace_back(Dim(q->zero_point));
    }
    arguments.emplace_back(range_of(to));
  }

  // ---- attention ----

  Value* softmax(Value& value, const Quantization& to) {
    const Node& node = *value.node;
    const ir::Call<ops::_softmax> call(node);
    if (!is_only_here(value)) return nullptr;
    const auto x = operand(call.get<"self">());
    if (!x) return decline(node, "its input is not de-quantized from i8");
    std::vector<int32_t> exponentials;
    for (int distance = 0; distance < 256; ++distance)
      exponentials.push_back(
          static_cast<int32_t>(std::lround(std::exp(-distance * x->numbers.scale) * 0x1p30)));
    Value* table = constant("", "", exponentials, {256});
    const int64_t dim = call.get<"dim">().value(), rank = value.type.rank;
    return did(node, images_.along(at_, x->integers, dim < 0 ? dim + rank : dim,
                                   [&](Value* integers, int64_t d) {
                                     return insert(node, ops::taper_softmax_q8,
                                                   {integers, table, Dim(d), to.scale,
                                                    Dim(to.zero_point), range_of(to)});
                                   }));
  }

  Value* matrices(Value& value, const Quantization& to) {
    const Node& node = *value.node;
    const ir::Call<ops::bmm> call(node);
    if (!is_only_here(value)) return nullptr;
    const auto a = operand(call.get<"self">()), b = operand(call.get<"mat2">());
    if (!a || !b) {
      if (a || b) decline(node, "only one of its operands is de-quantized from i8");
      return nullptr;
    }
    // the kernel reads any strides of the second one
    std::vector<Argument> arguments = {images_.dense(at_, a->integers), b->integers};
    for (const Quantization* q : {&a->numbers, &b->numbers, &to}) {
      arguments.emplace_back(q->scale);
      arguments.emplace_back(Dim(q->zero_point));
    }
    arguments.emplace_back(range_of(to));
    return did(node, insert(node, ops::taper_bmm_q8, std::move(arguments)));
  }

  Value* did(const Node& node, Value* integers) {
    context_.did(node, "it computes with integers of 8 bits");
    return integers;
  }

  ir::Graph& graph_;
  PassContext& context_;
  ConstantValues constants_;
  FunctionTable functions_{constants_};
  Images images_;
  Node* at_ = nullptr;  ///< new nodes stand before this one
  std::string why_;     ///< why the current value stays f32, and whose fault it is
  const Node* source_ = nullptr;
  std::unordered_set<const Node*> declined_;
  std::map<std::pair<Value*, Quantization>, Value*> known_;
};

}  // namespace

int fuse_quantized(ir::Graph& graph, PassContext& context) {
  const auto is_ours = [](const Kernel* k) { return k->op == &ops::taper_conv2d_q8; };
  if (std::ranges::none_of(context.kernels.all(), is_ours)) return 0;
  return IntegerFuser(graph, context).run();
}

}  // namespace taper::passes
