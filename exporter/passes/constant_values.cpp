#include "taper/exporter/passes/constant_values.h"

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/dispatch.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/control_flow.h"
#include "taper/exporter/ir/interpreter.h"

namespace taper::passes {
namespace {

/// An operator whose results are functions of its arguments, without symbolic numbers.
bool is_computable(const ir::Node& node) {
  const Category category = node.op->category;
  bool numbers = true;
  for (const ir::Argument& a : node.arguments)
    ir::for_each_dim(a, [&](Dim d) { numbers = numbers && d.is_constant(); });
  return numbers && category != Category::symbolic && category != Category::check &&
         !ir::is_control(node);
}

}  // namespace

ConstantValues::ConstantValues(const ir::Graph& graph) {
  for (const ir::Constant& c : graph.constants()) known_[c.value.get()] = ir::tensor_of(c.payload);
}

bool ConstantValues::can_compute(const ir::Node& node) const {
  bool known = is_computable(node);
  ir::for_each_value(node, [&](const ir::Value* v) { known = known && knows(v); });
  return known;
}

void ConstantValues::compute(const ir::Node& node) {
  eager::NoGrad guard;
  const eager::OperatorInfo& info = eager::info_of(*node.op);
  ir::BoxedArguments arguments(info, node.arguments, [this](ir::Value* v) { return known_.at(v); });
  std::vector<eager::Tensor> results(node.results.size());
  eager::dispatch(info, arguments.data(), results.data(), node.location);
  ir::make_results_dense(node, results);
  for (size_t i = 0; i < results.size(); ++i)
    if (node.result(i) != nullptr) known_[node.result(i)] = results[i];
}

bool ConstantValues::find(const ir::Value* value) {
  if (knows(value)) return true;
  if (value->node == nullptr || !is_computable(*value->node)) return false;
  bool found = true;
  ir::for_each_value(*value->node, [&](const ir::Value* v) { found = found && find(v); });
  if (found) compute(*value->node);
  return found;
}

}  // namespace taper::passes
