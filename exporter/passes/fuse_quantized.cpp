// Integer operators of what stands between dequantize and quantize.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/passes/function_tables.h"
#include "taper/exporter/passes/images.h"
#include "taper/exporter/passes/replace.h"

namespace taper::passes {
namespace {

using ir::Argument;
using ir::Node;
using ir::Value;

std::vector<Dim> range_of(const Quantization& q) { return {q.low, q.high}; }
std::vector<Dim> for_two_dims(const std::vector<Dim>& list) {
  return list.size() == 1 ? std::vector<Dim>{list[0], list[0]} : list;
}
bool are_numbers(const std::vector<Dim>& list) {
  return std::ranges::all_of(list, [](const Dim& d) { return d.is_constant(); });
}
Argument optional_number(const Dim* optional) {
  return optional == nullptr ? Argument() : *optional;
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
    if (node.op == &ops::avg_pool2d || node.op == &ops::_adaptive_avg_pool2d ||
        node.op == &ops::mean_dim)
      return average(*value, to);
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
    const Operator* const ranged[] = {&ops::taper_conv2d_q8, &ops::taper_linear_q8,
                                      &ops::taper_add_q8,    &ops::taper_sub_q8,
                                      &ops::taper_mul_q8,    &ops::taper_avg_pool2d_q8};
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
    std::vector<int64_t> sizes;
  };
  /// The constants of a product over i8. `turns`: the weight is (channels, inputs, taps…), and the
  /// inputs of a tap lie together in a panel.
  std::optional<Weights> weights(const Node& node, const Value* weight, Value* bias,
                                 double input_scale, int64_t groups, bool turns) {
    std::string why;
    auto w = quantized_weight(graph_, weight, constants_, why);
    if (!w) return decline(node, why), std::nullopt;
    std::vector<float> b;
    if (bias != nullptr) {
      if (!constants_.find(bias)) return decline(node, "its bias is no constant"), std::nullopt;
      if (bias->type.rank != 1) return decline(node, "its bias is no vector"), std::nullopt;
      b = constants_.at(bias).to(DType::f32).to_vector<float>();
    }
    const auto channels = static_cast<int64_t>(w->scales.size());
    if (bias != nullptr && b.size() != w->scales.size())
      return decline(node, "its bias has not one element for each output"), std::nullopt;
    const auto offsets = byte_offsets(*w, b, input_scale);
    if (!offsets)
      return decline(node,
                     "its bias does not fit into 32 bits, in units of the input's scale "
                     "times the weight's"),
             std::nullopt;
    const int64_t depth = channels == 0 ? 0 : static_cast<int64_t>(w->integers.size()) / channels;
    if (turns) turn(w->integers, channels, w->sizes[1], depth);
    const bool is_depthwise = turns && groups == channels && w->sizes[1] == 1;
    Value* panels = graph_.add_constant(
        w->path, byte_panels(w->integers, channels, depth, is_depthwise ? 1 : groups));
    return Weights{panels, constant(w->path, ".scales", w->scales, {channels}),
                   constant(w->path, ".offsets", *offsets, {2, channels}), w->sizes};
  }
  /// (channels, inputs, taps) becomes (channels, taps, inputs).
  static void turn(std::vector<int8_t>& integers, int64_t channels, int64_t inputs, int64_t depth) {
    const std::vector<int8_t> from = integers;
    const int64_t taps = inputs == 0 ? 0 : depth / inputs;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < inputs; ++i)
        for (int64_t t = 0; t < taps; ++t)
          integers[static_cast<size_t>(c * depth + t * inputs + i)] =
              from[static_cast<size_t>(c * depth + i * taps + t)];
  }

  Value* convolution(Value& value, const Quantization& to) {
    const Node& node = *value.node;
    const ir::Call<ops::convolution> conv(node);
    const int rank = value.type.rank;
    if (conv.get<"transposed">()) return decline(node, "it is transposed");
    if (rank != 3 && rank != 4) return decline(node, "it has three spatial dimensions");
    const std::vector<Dim>*stride = &conv.get<"stride">(), *padding = &conv.get<"padding">(),
          *dilation = &conv.get<"dilation">();
    if (!are_numbers(*stride) || !are_numbers(*padding) || !are_numbers(*dilation) ||
        !conv.get<"groups">().is_constant())
      return decline(node, "its stride, padding, dilation or groups are no numbers");
    if (!is_only_here(value)) return nullptr;
    const auto x = operand(conv.get<"input">());
    if (!x) return decline(node, "its input is not de-quantized from i8");
    const auto w = weights(node, conv.get<"weight">(), conv.get<"bias">(), x->numbers.scale,
                           conv.get<"groups">().value(), true);
    if (!w) return nullptr;
    // a line is an image with one row
    const auto spatial = [&](const std::vector<Dim>& list, int64_t of_row) {
      return rank == 4 ? for_two_dims(list) : std::vector<Dim>{of_row, list[0]};
    };
    std::vector<Dim> kernel;
    for (size_t i = 2; i < w->sizes.size(); ++i) kernel.emplace_back(w->sizes[i]);
    Value* image = insert(
        node, ops::taper_conv2d_q8,
        {images_.image(at_, x->integers), w->panels, w->scales, w->offsets, spatial(kernel, 1),
         spatial(*stride, 1), spatial(*padding, 0), spatial(*dilation, 1), conv.get<"groups">(),
         x->numbers.scale, Dim(x->numbers.zero_point), to.scale, Dim(to.zero_point), range_of(to)});
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
    const auto w = weights(node, weight, bias, x->numbers.scale, 1, false);
    if (!w) return nullptr;
    return did(node, insert(node, ops::taper_linear_q8,
                            {images_.dense(at_, x->integers), w->panels, w->scales, w->offsets,
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
    if (self->type.rank != 4) return decline(node, "it is no average over images");
    const Dim height = self->type.sizes[2], width = self->type.sizes[3];
    std::vector<Dim> kernel{height, width}, stride{1, 1}, padding{0, 0};
    bool ceil_mode = false, counts_padding = true, keeps = true;
    Argument divisor;
    if (node.op == &ops::avg_pool2d) {
      const ir::Call<ops::avg_pool2d> call(node);
      kernel = for_two_dims(call.get<"kernel_size">());
      stride = call.get<"stride">().empty() ? kernel : for_two_dims(call.get<"stride">());
      padding = for_two_dims(call.get<"padding">()), ceil_mode = call.get<"ceil_mode">();
      counts_padding = call.get<"count_include_pad">();
      divisor = optional_number(call.get<"divisor_override">());
    } else if (node.op == &ops::mean_dim) {
      const ir::Call<ops::mean_dim> call(node);
      const std::vector<Dim>* dims = call.get<"dim">();
      std::vector<int64_t> over;
      for (const Dim& d : dims == nullptr ? std::vector<Dim>() : *dims)
        over.push_back(d.value() < 0 ? d.value() + 4 : d.value());
      std::ranges::sort(over);
      if (over != std::vector<int64_t>{2, 3})
        return decline(node, "it is no average over height and width");
      keeps = call.get<"keepdim">();
    } else {
      const std::vector<Dim>& size = ir::Call<ops::_adaptive_avg_pool2d>(node).get<"output_size">();
      if (!same(size[0], 1) || !same(size[1], 1))
        return decline(node, "its windows have several sizes");
    }
    if (!are_numbers(kernel)) return decline(node, "the size of its windows is no number");
    if (!is_only_here(value)) return nullptr;
    const auto x = operand(self);
    if (!x) return decline(node, "its input is not de-quantized from i8");
    Value* image = insert(node, ops::taper_avg_pool2d_q8,
                          {images_.image(at_, x->integers), kernel, stride, padding, ceil_mode,
                           counts_padding, divisor, x->numbers.scale, Dim(x->numbers.zero_point),
                           to.scale, Dim(to.zero_point), range_of(to)});
    if (keeps) return did(node, images_.seen_first(at_, image, 4));
    return did(node, insert(node, ops::view,
                            {image, std::vector<Dim>{image->type.sizes[0], image->type.sizes[3]}}));
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
