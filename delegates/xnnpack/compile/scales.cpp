#include "taper/delegates/xnnpack/compile/scales.h"

#include <algorithm>

#include "taper/exporter/ir/call.h"

namespace taper::delegates::xnnpack {
namespace {

using ir::Call, ir::Node, ir::Value;

Scale make_scale(double scale, Dim zero_point) {
  return {static_cast<float>(scale), static_cast<int32_t>(zero_point.value())};
}
template <const Operator& op>
Scale output_of(const Node& node) {
  const Call<op> c(node);
  return make_scale(c.template get<"output_scale">(), c.template get<"output_zero_point">());
}
template <const Operator& op>
Scale input_of(const Node& node) {
  const Call<op> c(node);
  return make_scale(c.template get<"input_scale">(), c.template get<"input_zero_point">());
}
template <const Operator& op>
Scale operand_of(const Node& node, size_t position) {
  const Call<op> c(node);
  return position == 0
             ? make_scale(c.template get<"self_scale">(), c.template get<"self_zero_point">())
             : make_scale(c.template get<"other_scale">(), c.template get<"other_zero_point">());
}
template <const Operator& op>
Scale own_of(const Node& node) {
  const Call<op> c(node);
  return make_scale(c.template get<"scale">(), c.template get<"zero_point">());
}

template <class F>
void for_each_tensor(const ir::Argument& argument, F&& function) {
  if (const auto* one = std::get_if<Value*>(&argument)) {
    if (*one != nullptr) function(**one);
  } else if (const auto* many = std::get_if<std::vector<Value*>>(&argument)) {
    for (const Value* v : *many)
      if (v != nullptr) function(*v);
  }
}

using Known = std::vector<const Value*>;

std::optional<Scale> search(const Value& value, Known& seen) {
  if (std::ranges::find(seen, &value) != seen.end()) return {};
  seen.push_back(&value);
  if (const Node* node = value.node; node != nullptr) {
    if (const auto said = result_scale(*node)) return said;
    std::optional<Scale> found;
    if (moves(*node->op))
      ir::for_each_value(*node, [&](const Value* v) {
        if (!found && v->type.dtype == DType::i8) found = search(*v, seen);
      });
    if (found) return found;
  }
  for (const Node* user : value.users) {
    for (size_t i = 0; i < user->arguments.size(); ++i) {
      const auto* one = std::get_if<Value*>(&user->arguments[i]);
      if (one == nullptr || *one != &value) continue;
      if (const auto said = input_scale(*user, i)) return said;
    }
    if (moves(*user->op))
      if (const auto found = search(*user->result(), seen)) return found;
  }
  return {};
}

}  // namespace

bool moves(const Operator& op) {
  return op.category == Category::view || &op == &ops::cat || &op == &ops::constant_pad_nd ||
         &op == &ops::taper_max_pool2d;
}

std::optional<Scale> result_scale(const Node& node) {
  const Operator* op = node.op;
  if (op == &ops::taper_conv2d_q8) return output_of<ops::taper_conv2d_q8>(node);
  if (op == &ops::taper_linear_q8) return output_of<ops::taper_linear_q8>(node);
  if (op == &ops::taper_add_q8) return output_of<ops::taper_add_q8>(node);
  if (op == &ops::taper_sub_q8) return output_of<ops::taper_sub_q8>(node);
  if (op == &ops::taper_mul_q8) return output_of<ops::taper_mul_q8>(node);
  if (op == &ops::taper_avg_pool2d_q8) return output_of<ops::taper_avg_pool2d_q8>(node);
  if (op == &ops::quantized_decomposed_quantize_per_tensor)
    return own_of<ops::quantized_decomposed_quantize_per_tensor>(node);
  return {};
}

std::optional<Scale> input_scale(const Node& node, size_t position) {
  const Operator* op = node.op;
  if (op == &ops::taper_add_q8) return operand_of<ops::taper_add_q8>(node, position);
  if (op == &ops::taper_sub_q8) return operand_of<ops::taper_sub_q8>(node, position);
  if (op == &ops::taper_mul_q8) return operand_of<ops::taper_mul_q8>(node, position);
  if (position != 0) return {};  // the others are weights
  if (op == &ops::taper_conv2d_q8) return input_of<ops::taper_conv2d_q8>(node);
  if (op == &ops::taper_linear_q8) return input_of<ops::taper_linear_q8>(node);
  if (op == &ops::taper_avg_pool2d_q8) return input_of<ops::taper_avg_pool2d_q8>(node);
  if (op == &ops::quantized_decomposed_dequantize_per_tensor)
    return own_of<ops::quantized_decomposed_dequantize_per_tensor>(node);
  return {};
}

std::optional<Scale> scale_of(const Value& value) {
  Known seen;
  return search(value, seen);
}

std::string refuses_types(const Node& node) {
  std::string reason;
  const bool is_integer = result_scale(node).has_value() || input_scale(node, 0).has_value();
  const std::optional<Scale> moved = moves(*node.op) && node.result()->type.dtype == DType::i8
                                         ? scale_of(*node.result())
                                         : std::nullopt;
  for (size_t i = 0; i < node.arguments.size() && reason.empty(); ++i)
    for_each_tensor(node.arguments[i], [&](const Value& v) {
      if (v.type.dtype == DType::f32 || (is_integer && v.origin == Value::Origin::constant)) return;
      if (node.op == &ops::_grouped_mm && &v == ir::Call<ops::_grouped_mm>(node).get<"offs">())
        return;  // i32 or i64
      const std::optional<Scale> wanted = is_integer ? input_scale(node, i) : moved;
      if (v.type.dtype != DType::i8 || (!is_integer && !moves(*node.op)))
        reason = std::string("a tensor is ") + taper::name_of(v.type.dtype) + ", not f32";
      else if (!wanted || scale_of(v) != wanted)
        reason = "the scale of its integers is not known";
    });
  return reason;
}

}  // namespace taper::delegates::xnnpack
