#include "taper/exporter/ir/control_flow.h"

#include "taper/exporter/ir/delegate.h"

namespace taper::ir {
namespace {

template <const Operator& op>
const eager::OperatorInfo& described() {
  static const eager::OperatorInfo info = eager::describe({&op, &schema<op>});
  return info;
}

}  // namespace

const eager::OperatorInfo& info_of(const Operator& op) {
  if (&op == &ops::cond) return described<ops::cond>();
  if (&op == &ops::while_loop) return described<ops::while_loop>();
  if (&op == &ops::delegate) return described<ops::delegate>();
  return eager::info_of(op);
}

const eager::OperatorInfo* find_operator(std::string_view name) {
  for (const Operator* op : {&ops::cond, &ops::while_loop, &ops::delegate})
    if (name == name_of(*op)) return &info_of(*op);
  return eager::find_operator(name);
}

std::vector<Value*> operands_of(const Node& node) {
  std::vector<Value*> operands;
  for (size_t i = node.op == &ops::cond ? 1 : 0; i < node.arguments.size(); ++i)
    for_each_value(node.arguments[i], [&](Value* v) { operands.push_back(v); });
  return operands;
}

}  // namespace taper::ir
