#include "taper/exporter/quantize/static/input_scales.h"

#include <algorithm>

#include "taper/exporter/base/error.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/passes/replace.h"
#include "taper/exporter/quantize/static/roles.h"

namespace taper::quantize {
namespace {

using ir::Node;
using ir::Value;

ir::Constant& constant_of(ir::Graph& graph, const Value* value) {
  const auto found = std::ranges::find_if(
      graph.constants(), [&](const ir::Constant& c) { return c.value.get() == value; });
  if (found == graph.constants().end()) throw ExportError("%" + value->name + " is no constant");
  return *found;
}

/// The node that reads the weight itself: the product, or a transposing view before it.
Node* reader_of(const Value* weight) { return weight->users[0]; }

/// Whether a value is a constant with an element for each channel, and has one reader.
bool is_own_vector(const ir::Graph& graph, const Value* v, size_t channels) {
  if (v == nullptr || v->origin != Value::Origin::constant || v->type.dtype != DType::f32 ||
      v->type.rank == 0 || !passes::has_one_reader(graph, v))
    return false;
  for (int d = 0; d < v->type.rank; ++d) {
    const auto wanted = static_cast<int64_t>(d + 1 == v->type.rank ? channels : 1);
    if (!same(v->type.sizes[d], wanted)) return false;
  }
  return true;
}

/// Whether only one node reads a weight and the view between them.
bool is_read_once(const ir::Graph& graph, const Node& node, const Product& product) {
  if (!passes::has_one_reader(graph, product.weight)) return false;
  const Node* reader = reader_of(product.weight);
  return reader == &node || passes::has_one_reader(graph, reader->result());
}

}  // namespace

std::vector<SharedInput> find_shared_inputs(ir::Graph& graph) {
  std::vector<SharedInput> found;
  for (Node& node : graph.nodes()) {
    if (node.op == &ops::convolution) continue;
    const auto product = product_of(node);
    if (!product || !is_read_once(graph, node, *product)) continue;
    if (product->input->type.dtype != DType::f32 || product->input->type.rank < 1) continue;
    const Dim channels = product->weight->type.sizes[1 - product->axis];
    const auto known = std::ranges::find(found, product->input, &SharedInput::input);
    if (known == found.end())
      found.push_back({product->input, {&node}, channels.value()});
    else
      known->products.push_back(&node);
  }
  return found;
}

ir::Constant& weight_of(ir::Graph& graph, const Node& product) {
  return constant_of(graph, product_of(product)->weight);
}

void for_each_channel(const Node& product, std::span<float> weight,
                      const std::function<void(float&, size_t)>& visit) {
  const Product p = *product_of(product);
  const auto columns = static_cast<size_t>(p.weight->type.sizes[1].value());
  const bool channels_last = p.axis == 0;
  for (size_t i = 0; i < weight.size(); ++i)
    visit(weight[i], channels_last ? i % columns : i / columns);
}

bool InputScaling::scale(ir::Graph& graph, const SharedInput& shared,
                         std::span<const float> factors, bool may_add_node) {
  const auto& users = shared.input->users;
  const bool is_alone = !graph.is_returned(shared.input) && users.size() == shared.products.size();
  if (!is_alone || !divide(graph, shared.input, factors)) {
    if (!may_add_node) return false;
    divide_by_node(graph, shared, factors);
  }
  for (Node* node : shared.products) {
    Value* weight = product_of(*node)->weight;
    change(graph, reader_of(weight), weight, [&](std::vector<float>& elements) {
      for_each_channel(*node, elements, [&](float& w, size_t c) { w *= factors[c]; });
    });
  }
  graph.erase_unused_constants();
  return true;
}

/// Divides the channels of a value where they are made. False: that is not possible.
bool InputScaling::divide(ir::Graph& graph, Value* value, std::span<const float> factors) {
  Node* node = value->node;
  if (node == nullptr || value->index != 0) return false;
  const auto divide_operand = [&](Value* operand) {
    return passes::has_one_reader(graph, operand) && divide(graph, operand, factors);
  };
  if (node->op == &ops::mul_Tensor) {
    const ir::Call<ops::mul_Tensor> call(*node);
    for (Value* v : {call.get<"self">(), call.get<"other">()})
      if (divide_argument(graph, node, v, factors)) return true;
    return divide_operand(call.get<"other">()) || divide_operand(call.get<"self">());
  }
  if (node->op == &ops::relu) return divide_operand(ir::Call<ops::relu>(*node).get<"self">());
  if (Value* weight = ir::tensor_of_any<"weight", ops::rms_norm, ops::_fused_rms_norm>(*node))
    return divide_argument(graph, node, weight, factors);
  if (Value* weight = ir::tensor_of_any<"weight", ops::layer_norm, ops::native_layer_norm>(*node)) {
    Value* bias = ir::tensor_of_any<"bias", ops::layer_norm, ops::native_layer_norm>(*node);
    if (!is_own_vector(graph, weight, factors.size()) ||
        (bias != nullptr && !is_own_vector(graph, bias, factors.size())))
      return false;
    if (bias != nullptr) divide_argument(graph, node, bias, factors);
    return divide_argument(graph, node, weight, factors);
  }
  return divide_product(graph, node, factors);
}

/// A constant vector that a node multiplies with, or adds.
bool InputScaling::divide_argument(ir::Graph& graph, Node* node, Value* vector,
                                   std::span<const float> factors) {
  if (!is_own_vector(graph, vector, factors.size())) return false;
  change(graph, node, vector, [&](std::vector<float>& elements) {
    for (size_t c = 0; c < factors.size(); ++c) elements[c] /= factors[c];
  });
  return true;
}

/// The rows of a weight, and its bias.
bool InputScaling::divide_product(ir::Graph& graph, Node* node, std::span<const float> factors) {
  const auto product = product_of(*node);
  if (node->op == &ops::convolution || !product || !is_read_once(graph, *node, *product))
    return false;
  const auto rows = static_cast<size_t>(product->weight->type.sizes[product->axis].value());
  if (rows != factors.size()) return false;
  if (product->bias != nullptr && !divide_argument(graph, node, product->bias, factors))
    return false;
  const auto columns = static_cast<size_t>(product->weight->type.sizes[1].value());
  change(graph, reader_of(product->weight), product->weight, [&](std::vector<float>& elements) {
    for (size_t i = 0; i < elements.size(); ++i)
      elements[i] /= factors[product->axis == 0 ? i / columns : i % columns];
  });
  return true;
}

void InputScaling::divide_by_node(ir::Graph& graph, const SharedInput& shared,
                                  std::span<const float> factors) const {
  std::vector<float> inverse;
  for (const float f : factors) inverse.push_back(1 / f);
  Value* constant =
      graph.add_constant("input_scale", ir::Payload::from(inverse, {shared.channels}));
  Node* first = shared.products.front();
  Value* divided = ir::insert_before(graph, first, ops::mul_Tensor, {shared.input, constant},
                                     first->location, first->module)
                       ->result();
  for (Node* node : shared.products) graph.replace_uses_in(node, shared.input, divided);
}

/// Gives one reader of a constant changed elements.
void InputScaling::change(ir::Graph& graph, Node* reader, Value* constant, const Change& change) {
  const ir::Constant& old = constant_of(graph, constant);
  Payload& made = made_[old.payload.get()];
  if (made == nullptr) {
    std::vector<float> elements = ir::tensor_of(old.payload).to_vector<float>();
    change(elements);
    kept_.push_back(old.payload);
    made = ir::Payload::from(elements, old.payload->sizes);
  }
  graph.replace_uses_in(reader, constant, graph.add_constant(old.path, made));
}

}  // namespace taper::quantize
