// fuse_quantized: clamps, and the same elements at other places.
#include <algorithm>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/passes/integer_fuser.h"
#include "taper/exporter/passes/replace.h"

namespace taper::passes {
namespace {

using ir::Argument;
using ir::Node;
using ir::Value;

struct Clamp {
  Value* input;
  Quantization to;  ///< that of the result, with a smaller range
};

std::optional<Clamp> clamp_of(const Node& node, Quantization to) {
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
  if ((low && high && *low > *high) || (low && *low != *low) || (high && *high != *high)) return {};
  if (low) to.low = to.integer(*low);
  if (high) to.high = std::max(to.low, to.integer(*high));
  return Clamp{input, to};
}

}  // namespace

Value* IntegerFuser::clamp(Value& value, const Quantization& to) {
  const auto found = clamp_of(*value.node, to);
  return found && is_only_here(value) ? quantized(found->input, found->to) : nullptr;
}

Value* IntegerFuser::clamp_producer(Value& value, const Quantization& to) {
  const auto found = clamp_of(*value.node, to);
  if (!found || !has_one_reader(graph_, found->input) || !is_only_quantized(value)) return nullptr;
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

Value* IntegerFuser::move(Value& value, const Quantization& to) {
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

}  // namespace taper::passes
