// Integer operators of what stands between dequantize and quantize.
#include <algorithm>
#include <cmath>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/passes/integer_fuser.h"
#include "taper/exporter/passes/replace.h"

namespace taper::passes {
namespace {

using ir::Argument;
using ir::Node;
using ir::Value;

/// Whether the integers lie in the range. Those that the caller gives may be any.
bool has_range(const Dequantized& x, const Quantization& to) {
  const bool is_given = x.integers->node == nullptr;
  const int64_t low = is_given ? -128 : x.numbers.low, high = is_given ? 127 : x.numbers.high;
  return to.low <= low && high <= to.high;
}

}  // namespace

int IntegerFuser::run() {
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

bool IntegerFuser::fuse(Node& node) {
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

void IntegerFuser::note_if_float(const Node& node) {
  if (quantization_of(node, constants_) || node.op->category == Category::view) return;
  bool reads_integers = false;
  ir::for_each_value(node, [&](const Value* v) {
    reads_integers = reads_integers || dequantized(v, constants_).has_value();
  });
  if (reads_integers && !declined_.contains(&node))
    context_.declined(node, "it computes in f32, because nothing quantizes its result");
}

Value* IntegerFuser::decline(const Node& node, std::string why) {
  if (why_.empty()) {
    why_ = std::move(why), source_ = &node;
    declined_.insert(&node);
  }
  return nullptr;
}

Value* IntegerFuser::did(const Node& node, Value* integers) {
  context_.did(node, "it computes with integers of 8 bits");
  return integers;
}

Value* IntegerFuser::insert(const Node& like, const Operator& op, std::vector<Argument> arguments) {
  return ir::insert_before(graph_, at_, op, std::move(arguments), like.location, like.module)
      ->result();
}

Value* IntegerFuser::quantized(Value* value, const Quantization& to) {
  if (value->node == nullptr) return nullptr;
  const auto key = std::make_pair(value, to);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  Value* integers = computed(value, to);
  if (integers != nullptr) known_[key] = integers;
  return integers;
}

Value* IntegerFuser::computed(Value* value, const Quantization& to) {
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

bool IntegerFuser::reads_integers(const Node& node) {
  bool reads = false;
  ir::for_each_value(
      node, [&](const Value* v) { reads = reads || dequantized(v, constants_).has_value(); });
  return reads;
}

bool IntegerFuser::is_only_here(const Value& value) {
  if (has_one_reader(graph_, &value)) return true;
  const bool quantized_only = is_only_quantized(value);
  if (!quantized_only) decline(*value.node, "its result is read in f32, too");
  return quantized_only;
}

bool IntegerFuser::is_only_quantized(const Value& value) {
  return !graph_.is_returned(&value) && std::ranges::all_of(value.users, [&](const Node* user) {
    return quantization_of(*user, constants_).has_value();
  });
}

std::optional<Dequantized> IntegerFuser::operand(Value* value) {
  const auto below = quantization_below(value);
  if (!below) return {};
  Value* integers = quantized(value, *below);
  if (integers == nullptr) return {};
  return Dequantized{integers, *below};
}

std::optional<Quantization> IntegerFuser::quantization_below(const Value* value) {
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

int fuse_quantized(ir::Graph& graph, PassContext& context) {
  const auto is_ours = [](const Kernel* k) { return k->op == &ops::taper_conv2d_q8; };
  if (std::ranges::none_of(context.kernels.all(), is_ours)) return 0;
  return IntegerFuser(graph, context).run();
}

}  // namespace taper::passes
