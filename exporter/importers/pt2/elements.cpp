// Integers in tensors of one element that follow from sizes: `torch.tensor(min(x.size(1), 64)) +
// 1`. PyTorch gives each of them that a model reads a new symbol. Here it stays an expression of
// sizes.
#include <algorithm>
#include <optional>

#include "taper/exporter/importers/pt2/executor.h"
#include "taper/exporter/importers/pt2/targets.h"

namespace taper::pt2 {
namespace {

/// Operators whose result holds the element of their first argument.
bool keeps_element(const Operator* op) {
  const Operator* const rows[] = {&ops::_to_copy,        &ops::alias,     &ops::clone,
                                  &ops::detach,          &ops::detach_,   &ops::expand,
                                  &ops::lift_fresh_copy, &ops::reshape,   &ops::squeeze,
                                  &ops::scalar_tensor,   &ops::to_device, &ops::to_dtype,
                                  &ops::to_dtype_layout, &ops::view,      &ops::unsqueeze};
  return std::ranges::find(rows, op) != std::end(rows);
}

/// The element of a result, from those of the operands. Nothing for other operators.
std::optional<Dim> element_of(const Operator* op, Dim a, Dim b) {
  if (op == &ops::add_Tensor || op == &ops::add_Scalar) return a + b;
  if (op == &ops::sub_Tensor || op == &ops::sub_Scalar) return a - b;
  if (op == &ops::rsub_Tensor || op == &ops::rsub_Scalar) return b - a;
  if (op == &ops::mul_Tensor || op == &ops::mul_Scalar) return a * b;
  if (op == &ops::minimum) return min(a, b);
  if (op == &ops::maximum) return max(a, b);
  return std::nullopt;
}

bool has_one_element(const TensorMeta& meta) {
  return std::ranges::all_of(meta.sizes, [](const SymInt& s) { return s == SymInt(int64_t{1}); });
}

}  // namespace

std::optional<Dim> Executor::element(const Argument& argument) const {
  if (const auto* tensor = std::get_if<TensorName>(&argument)) {
    const auto at = elements_.find(tensor->name);
    return at == elements_.end() ? std::nullopt : std::optional(at->second);
  }
  if (std::holds_alternative<bool>(argument) || !is_number(argument)) return std::nullopt;
  const Number given = number(argument);
  return given.is_dim() ? std::optional(given.numerator) : std::nullopt;
}

void Executor::follow_element(const Node& node) {
  const auto name = operator_name(node.target);
  const eager::Overload overload = name ? find_runnable(*name) : eager::Overload{};
  if (overload.info == nullptr || node.inputs.empty() || node.outputs.size() != 1) return;
  const bool keeps = keeps_element(overload.info->op);
  if (overload.in_place && !keeps) return elements_.clear();  // a write, perhaps through a view
  const auto* result = std::get_if<TensorName>(&node.outputs[0]);
  const auto meta =
      result == nullptr ? graph_.tensor_values.end() : graph_.tensor_values.find(result->name);
  if (meta == graph_.tensor_values.end() || meta->second.dtype.dtype() != DType::i64 ||
      !has_one_element(meta->second))
    return;
  const std::optional<Dim> first = element(node.inputs[0].value);
  if (!first) return;
  if (keeps) {
    elements_.emplace(result->name, *first);
  } else if (node.inputs.size() == 2) {  // a third argument is a factor
    const std::optional<Dim> second = element(node.inputs[1].value);
    const auto both = second ? element_of(overload.info->op, *first, *second) : std::nullopt;
    if (both) elements_.emplace(result->name, *both);
  }
}

}  // namespace taper::pt2
