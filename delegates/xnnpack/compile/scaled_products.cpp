// How torchao writes a product of integers (Int8DynamicActivationInt8WeightConfig):
//
//   f32(_int_mm(u8(q + 128), w) - 128 * sum(w)) * scales of the rows * scales of the weight [+
//   bias]
//
// Some processors multiply unsigned with signed bytes, which is why 128 comes and goes. It may be
// missing.
#include <algorithm>

#include "taper/delegates/xnnpack/compile/round_trips.h"
#include "taper/delegates/xnnpack/compile/rounded.h"
#include "taper/delegates/xnnpack/compile/table.h"

namespace taper::delegates::xnnpack {
namespace scaled {
namespace {

using ir::Call, ir::Node, ir::Value;

constexpr int64_t shift = 128;

/// The value that views and casts show. They keep the numbers: integers of few bits.
const Value* shown(const Value* v) {
  while (v->node != nullptr &&
         (v->node->op->category == Category::view || v->node->op == &ops::_to_copy))
    v = std::get<Value*>(v->node->arguments[0]);
  return v;
}

bool is(const Scalar* s, int64_t number) {
  return s != nullptr && s->to<double>() == static_cast<double>(number);
}

/// A call of two tensors, one of which follows from constants.
struct WithConstant {
  const Value *value, *constant;
};
template <const Operator& op>
std::optional<WithConstant> with_constant(const Value* v, passes::ConstantValues& constants) {
  const Node* node = producer<op>(v);
  if (node == nullptr) return {};
  if constexpr (&op != &ops::mul_Tensor)
    if (!is(Call<op>(*node).template get<"alpha">(), 1)) return {};
  const Value *a = std::get<Value*>(node->arguments[0]), *b = std::get<Value*>(node->arguments[1]);
  if (constants.find(b)) return WithConstant{a, b};
  if (&op != &ops::sub_Tensor && constants.find(a)) return WithConstant{b, a};
  return {};
}

std::vector<int64_t> integers_of(const Value* v, passes::ConstantValues& constants) {
  return constants.at(v).to(DType::i64).to_vector<int64_t>();
}

/// The integers that q + 128 was made of; nullptr: it is something else.
const Value* without_shift(const Value* v) {
  const Node* node = producer<ops::add_Scalar>(shown(v));
  if (node == nullptr) return nullptr;
  const Call<ops::add_Scalar> c(*node);
  const bool shifts = is(c.get<"other">(), shift) && is(c.get<"alpha">(), 1);
  return shifts ? shown(c.get<"self">()) : nullptr;
}

/// An exact product of integers.
struct IntegerProduct {
  const Value* input;  ///< i8 (…, inputs)
  IntegerWeight weight;
};
std::optional<IntegerProduct> integer_product(const Value* value,
                                              passes::ConstantValues& constants) {
  const auto corrected = with_constant<ops::sub_Tensor>(value, constants);
  const Node* product = producer<ops::_int_mm>(shown(corrected ? corrected->value : value));
  if (product == nullptr) return {};
  const Call<ops::_int_mm> c(*product);
  const Value* weight = c.get<"mat2">();
  const Value* input = corrected ? without_shift(c.get<"self">()) : shown(c.get<"self">());
  if (input == nullptr || input->type.dtype != DType::i8 || input->type.rank < 1 ||
      weight->type.dtype != DType::i8 || !constants.find(weight))
    return {};
  const eager::Tensor w = constants.at(weight).transpose(0, 1).contiguous();  // (outputs, inputs)
  IntegerProduct result{
      input, {w.to_vector<int8_t>(), {}, w.size(0).value(), w.size(1).value(), w.size(1).value()}};
  if (!proves_equal(input->type.sizes[input->type.rank - 1], result.weight.inputs)) return {};
  if (!corrected) return result;
  const std::vector<int64_t> correction = integers_of(corrected->constant, constants);
  if (correction.size() != static_cast<size_t>(result.weight.outputs)) return {};
  for (int64_t row = 0; row < result.weight.outputs; ++row) {
    int64_t sum = 0;
    for (int64_t k = 0; k < result.weight.inputs; ++k)
      sum += result.weight.integers[static_cast<size_t>(row * result.weight.inputs + k)];
    if (correction[static_cast<size_t>(row)] != shift * sum) return {};
  }
  return result;
}

bool is_symmetric(const Node& chooses) {
  if (chooses.op == &ops::torchao_choose_qparams_affine)
    return Call<ops::torchao_choose_qparams_affine>(chooses).get<"mapping_type">().starts_with(
        "SYMMETRIC");
  return chooses.op == &ops::quantized_decomposed_choose_qparams_per_token;
}

/// A vector of f32 for the outputs, or a column.
bool is_for_outputs(const Value* v, const IntegerWeight& w) {
  return v->type.dtype == DType::f32 && proves_equal(v->type.numel(), w.outputs);
}

/// A reshape of the result, which has as many dimensions as the node's, has one symbolic size.
bool has_one_symbol(const Value& v) {
  return std::count_if(v.type.sizes, v.type.sizes + v.type.rank,
                       [](Dim d) { return !d.is_constant(); }) <= 1;
}

std::optional<RoundedProduct> without_bias(const Value* value, Node& last,
                                           passes::ConstantValues& constants) {
  const auto by_outputs = with_constant<ops::mul_Tensor>(value, constants);
  const Node* by_rows = by_outputs ? producer<ops::mul_Tensor>(by_outputs->value) : nullptr;
  if (by_rows == nullptr) return {};
  const Value *sums = shown(std::get<Value*>(by_rows->arguments[0])),
              *scales = shown(std::get<Value*>(by_rows->arguments[1]));
  auto product = integer_product(sums, constants);
  if (!product) std::swap(sums, scales), product = integer_product(sums, constants);
  const auto source =
      product && product->input->node != nullptr ? quantized(*product->input->node) : std::nullopt;
  if (!source || source->chooses->result(0) != scales || !is_symmetric(*source->chooses) ||
      !is_for_outputs(by_outputs->constant, product->weight) ||
      !refuses_value(*source->input).empty() || !refuses_value(*last.result()).empty() ||
      !has_one_symbol(*last.result()))
    return {};
  product->weight.scales = constants.at(by_outputs->constant).reshape({-1}).to_vector<float>();
  if (!is_taken(product->weight)) return {};
  partition::Group group = nodes_between(*source->input, last);
  if (group.empty()) return {};
  return RoundedProduct{std::move(group), source->input, nullptr, std::move(product->weight)};
}

}  // namespace
}  // namespace scaled

std::optional<RoundedProduct> scaled_product(ir::Node& node, passes::ConstantValues& constants) {
  using namespace scaled;
  if (node.op == &ops::mul_Tensor) return without_bias(node.result(), node, constants);
  const auto sum = with_constant<ops::add_Tensor>(node.result(), constants);
  if (!sum || sum->constant->origin != Value::Origin::constant || sum->constant->type.rank != 1)
    return {};
  auto product = without_bias(shown(sum->value), node, constants);
  if (!product || !is_for_outputs(sum->constant, product->weight)) return {};
  product->bias = sum->constant;
  return product;
}

}  // namespace taper::delegates::xnnpack
