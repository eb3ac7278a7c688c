#include "taper/exporter/passes/half_plan.h"

#include <algorithm>
#include <memory>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/control_flow.h"
#include "taper/exporter/passes/match.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Type;
using ir::Value;

const Value* only_f32_result(const Node& node) {
  const Value* result = node.results.size() == 1 ? node.result() : nullptr;
  return result != nullptr && result->type.dtype == DType::f32 ? result : nullptr;
}

/// Whether the node has one f32 result, and its operands together broadcast to that result's sizes.
bool is_elementwise(const Node& node) {
  const Value* result = only_f32_result(node);
  if (result == nullptr || is_view(node)) return false;
  bool fits = true, same_size = false;
  ir::for_each_value(node, [&](const Value* v) {
    fits = fits && broadcasts_to(v->type, result->type);
    same_size = same_size || broadcasts_to(result->type, v->type);
  });
  return fits && same_size;
}

}  // namespace

bool broadcasts_to(const Type& from, const Type& to) {
  if (from.rank > to.rank) return false;
  for (int i = 1; i <= from.rank; ++i) {
    const Dim size = from.sizes[from.rank - i];
    if (!same(size, 1) && !same(size, to.sizes[to.rank - i])) return false;
  }
  return true;
}

bool change_dtype(ir::Argument& argument, DType half) {
  auto* dtype = std::get_if<DType>(&argument);
  if (dtype == nullptr || *dtype != DType::f32) return false;
  *dtype = half;
  return true;
}

HalfPlan::HalfPlan(const ir::Graph& graph, DType half, const target::KernelTable& kernels)
    : graph_(graph) {
  for (const Node& node : graph.nodes())
    if (!is_view(node) && !ir::is_control(node)) try_in_half(node, half, kernels);
  for (auto at = graph.nodes().rbegin(); at != graph.nodes().rend(); ++at) {
    if (all_lead_to_integers(*at)) to_integers_.insert(&*at);
    if (all_read_f32(*at)) to_f32_.insert(&*at);
  }
}

const std::vector<Type>* HalfPlan::types_in_half(const Node& node) const {
  const auto at = in_half_.find(&node);
  return at == in_half_.end() ? nullptr : &at->second;
}

bool HalfPlan::grows(const Node& node) {
  static const std::unordered_set<const Operator*> table = {
      &ops::pow_Tensor_Scalar,
      &ops::pow_Tensor_Tensor,
      &ops::pow_Scalar,
      &ops::exp,
      &ops::exp2,
      &ops::expm1,
      &ops::sum_dim_IntList,
      &ops::nansum,
      &ops::mean,
      &ops::mean_dim,
      &ops::prod,
      &ops::prod_dim_int,
      &ops::cumsum,
      &ops::cumprod,
      &ops::var_correction,
      &ops::var_mean_correction,
      &ops::linalg_vector_norm,
  };
  static const match::Variable x;
  static const match::Pattern square =
      match::call<ops::mul_Tensor>(match::arg<"self">(any(x)), match::arg<"other">(any(x)));
  return table.contains(node.op) || find(square, node);
}

const Value* HalfPlan::takes_part_of(const Node& node) {
  return ir::tensor_of_any<"self", ops::gather, ops::index_select, ops::index_Tensor,
                           ops::index_copy, ops::index_put, ops::index_add, ops::scatter_src,
                           ops::scatter_value, ops::select_scatter, ops::scatter_add,
                           ops::slice_scatter>(node);
}

/// Infers the types with halves by the operator's rule, and asks whether a kernel takes them.
void HalfPlan::try_in_half(const Node& node, DType half, const target::KernelTable& kernels) {
  Node probe{node.op, node.arguments, {}, {}, {}, {}, {}};
  std::vector<std::unique_ptr<Value>> owned;
  for (ir::Argument& a : probe.arguments) {
    change_dtype(a, half);
    change_values(a, [&](Value* v) {
      if (v->type.dtype != DType::f32) return v;
      Value* copy = owned.emplace_back(std::make_unique<Value>()).get();
      copy->type = v->type;
      copy->type.dtype = half;
      return copy;
    });
  }
  std::vector<Type> types;
  try {
    std::vector<Check> known;
    types = ir::infer(*node.op, probe.arguments, known);
  } catch (const ExportError&) {
    return;  // the rule does not allow halves
  }
  for (size_t i = 0; i < node.results.size(); ++i) {
    auto& result = probe.results.emplace_back();
    if (node.result(i) == nullptr) continue;
    result = std::make_unique<Value>();
    result->type = types[i];
  }
  if (kernels.runs(probe)) in_half_.emplace(&node, std::move(types));
}

bool HalfPlan::all_lead_to_integers(const Node& node) const {
  if (node.op == &ops::_to_copy && is_integral(node.result()->type.dtype)) return true;
  const Value* result = only_f32_result(node);
  return result != nullptr && !result->users.empty() && !graph_.is_returned(result) &&
         (is_view(node) || is_elementwise(node)) &&
         std::ranges::all_of(result->users, [&](const Node* n) { return leads_to_integers(*n); });
}

bool HalfPlan::reads_f32(const Node& node) const {
  return !is_view(node) &&
         (types_in_half(node) == nullptr || grows(node) || leads_to_integers(node));
}

/// If all readers read f32, a result may stay f32 and pass through elementwise readers. An
/// elementwise reader counts only if it is the only one: a value with many readers may live long,
/// and takes less memory as a half.
bool HalfPlan::all_read_f32(const Node& node) const {
  const Value* result = only_f32_result(node);
  if (result == nullptr || result->users.empty() || graph_.is_returned(result)) return false;
  const bool alone = result->users.size() == 1;
  return (is_view(node) || is_elementwise(node)) &&
         std::ranges::all_of(result->users, [&](const Node* n) {
           return reads_f32(*n) || (leads_to_f32(*n) && (alone || is_view(*n)));
         });
}

}  // namespace taper::passes
