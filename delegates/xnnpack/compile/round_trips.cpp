#include "taper/delegates/xnnpack/compile/round_trips.h"

#include <set>

namespace taper::delegates::xnnpack {
namespace {

using ir::Call, ir::Node, ir::Value;

bool is_range_of_bytes(Dim low, Dim high) {
  return (proves_equal(low, -128) || proves_equal(low, -127)) && proves_equal(high, 127);
}
bool is_range_of_bytes(const Scalar* low, const Scalar* high) {
  return low != nullptr && high != nullptr && !low->is_real && !high->is_real &&
         is_range_of_bytes(Dim(low->integer), Dim(high->integer));
}

/// Whether a block is a row, or the whole tensor.
bool covers_rows(const std::vector<Dim>& block, const Value& x) {
  if (block.empty() || block.size() != static_cast<size_t>(x.type.rank)) return false;
  if (!proves_equal(block.back(), x.type.sizes[x.type.rank - 1])) return false;
  const auto others = block.size() - 1;
  const auto all = [&](auto&& holds) {
    for (size_t d = 0; d < others; ++d)
      if (!holds(block[d], x.type.sizes[d])) return false;
    return true;
  };
  return all([](Dim b, Dim) { return proves_equal(b, 1); }) ||
         all([](Dim b, Dim size) { return proves_equal(b, size); });
}

bool chooses_numbers(const Node& node) {
  const auto for_all = [&]<const Operator & op>() {
    const Call<op> c(node);
    return c.template get<"dtype">() == DType::i8 &&
           is_range_of_bytes(c.template get<"quant_min">(), c.template get<"quant_max">());
  };
  if (node.op == &ops::quantized_decomposed_choose_qparams_tensor)
    return for_all.operator()<ops::quantized_decomposed_choose_qparams_tensor>();
  if (node.op == &ops::quantized_decomposed_choose_qparams_symmetric_tensor)
    return for_all.operator()<ops::quantized_decomposed_choose_qparams_symmetric_tensor>();
  if (node.op == &ops::torchao_choose_qparams_affine) {
    const Call<ops::torchao_choose_qparams_affine> c(node);
    return c.get<"target_dtype">() == DType::i8 &&
           is_range_of_bytes(c.get<"quant_min">(), c.get<"quant_max">()) &&
           covers_rows(c.get<"block_size">(), *c.get<"input">());
  }
  return node.op == &ops::quantized_decomposed_choose_qparams_per_token ||
         node.op == &ops::quantized_decomposed_choose_qparams_per_token_asymmetric;
}

/// The scale and the zero point of a node that quantizes or de-quantizes.
std::vector<const Value*> numbers_of(const Node& node) {
  std::vector<const Value*> list;
  ir::for_each_value(node, [&](const Value* v) { list.push_back(v); });
  list.erase(list.begin());  // what is quantized
  return list;
}

bool collect(const Value* value, const Value& input, std::set<const Node*>& seen,
             partition::Group& group) {
  if (value == &input || value->origin == Value::Origin::constant) return true;
  if (value->node == nullptr || !value->node->bodies.empty()) return false;
  if (!seen.insert(value->node).second) return true;
  bool follows = true;
  ir::for_each_value(*value->node,
                     [&](const Value* v) { follows = follows && collect(v, input, seen, group); });
  group.push_back(value->node);
  return follows;
}

}  // namespace

std::optional<Quantized> quantized(const Node& node) {
  if (node.op != &ops::quantized_decomposed_quantize_per_tensor_tensor &&
      node.op != &ops::quantized_decomposed_quantize_per_token &&
      node.op != &ops::torchao_quantize_affine)
    return {};
  const std::vector<const Value*> chosen = numbers_of(node);
  const Value* input = std::get<Value*>(node.arguments[0]);
  if (node.result()->type.dtype != DType::i8 || input->type.dtype != DType::f32 ||
      chosen.size() != 2)
    return {};
  const Node* chooses = chosen[0]->node;
  if (chooses == nullptr || !chooses_numbers(*chooses) || chooses->result(0) != chosen[0] ||
      chooses->result(1) != chosen[1] || std::get<Value*>(chooses->arguments[0]) != input)
    return {};
  return Quantized{chooses, input};
}

std::optional<Quantized> quantized_and_back(const Value* value) {
  const Node* dequantizes =
      producer<ops::quantized_decomposed_dequantize_per_tensor_tensor,
               ops::quantized_decomposed_dequantize_per_token, ops::torchao_dequantize_affine>(
          value);
  if (dequantizes == nullptr || value->type.dtype != DType::f32) return {};
  const Node* quantizes = std::get<Value*>(dequantizes->arguments[0])->node;
  if (quantizes == nullptr || numbers_of(*quantizes) != numbers_of(*dequantizes)) return {};
  return quantized(*quantizes);
}

partition::Group nodes_between(const Value& input, Node& last) {
  std::set<const Node*> seen;
  partition::Group group;
  return collect(last.result(), input, seen, group) ? group : partition::Group();
}

}  // namespace taper::delegates::xnnpack
