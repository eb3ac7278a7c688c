// Higher-order operators. Their bodies run through eager. In a run, eager chooses the branch; in a
// trace, it records branches and loops of the program.
#include "taper/exporter/eager/control_flow.h"

#include <algorithm>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/importers/pt2/executor.h"
#include "taper/exporter/importers/pt2/targets.h"

namespace taper::pt2 {
namespace {

using eager::Tensor;
using Tensors = std::vector<Tensor>;
using Values = std::vector<GraphValue>;

/// Operand `i` of a call whose operands have no names.
const Argument& operand(const Node& node, size_t i) {
  if (i >= node.inputs.size()) throw ExportError("lacks its operand " + std::to_string(i));
  return node.inputs[i].value;
}

Values joined(Values a, const Values& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Values as_values(const Tensors& tensors) { return {tensors.begin(), tensors.end()}; }

/// Converts numbers to tensors of one element, because bodies take and return only tensors. A graph
/// that knows a name as a number converts it back (`Executor::read`).
Tensors as_tensors(const Values& values) {
  Tensors tensors;
  for (const GraphValue& value : values) {
    if (const auto* number = std::get_if<Number>(&value))
      tensors.push_back(number->as_tensor(number->dtype()));
    else if (const auto* tensor = std::get_if<Tensor>(&value))
      tensors.push_back(*tensor);
    else
      throw ExportError("a body takes or gives None, where only tensors and numbers can be");
  }
  return tensors;
}

Tensors part(const Tensors& list, size_t first, size_t count) {
  if (first + count > list.size()) throw ExportError("its body gives too few results");
  const auto begin = list.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

Executor::Body Executor::body(const Argument& argument, bool follows_dtypes) const {
  const auto* sub = std::get_if<GraphArgument>(&argument);
  if (sub == nullptr) throw ExportError("a subgraph is missing");
  // a derivative may run the body again after this executor is gone
  return [graph = sub->graph, assumptions = assumptions_, symbols = symbols_, observer = observer_,
          modules = modules_, follows = follows_dtypes || follows_dtypes_](Values inputs) {
    const eager::ModulePathScope scope(modules);  // the nodes of the body record whole module paths
    Executor executor(*graph, assumptions, symbols);
    executor.follows_dtypes_ = follows;
    executor.goes_on_ = false;
    executor.observe(observer);
    return executor.run(std::move(inputs));
  };
}

bool is_supported_higher_order(std::string_view name) {
  constexpr std::string_view supported[] = {"cond",
                                            "while_loop",
                                            "scan",
                                            "map_impl",
                                            "wrap_with_set_grad_enabled",
                                            "wrap_with_autocast",
                                            "invoke_subgraph",
                                            "with_effects",
                                            "print"};
  return std::ranges::find(supported, name) != std::end(supported);
}

std::optional<Node> effect_of(const Node& node) {
  if (higher_order_name(node.target) != "with_effects" || node.inputs.size() < 2) return {};
  const auto* target = std::get_if<std::string>(&node.inputs[1].value);
  if (target == nullptr) return {};
  Node call = node;
  call.target = *target;
  call.inputs.erase(call.inputs.begin(), call.inputs.begin() + 2);
  const auto name = operator_name(call.target);
  const eager::OperatorInfo* info = name ? find_runnable(*name).info : nullptr;
  const size_t known = info == nullptr ? 0 : static_cast<size_t>(info->argument_count);
  for (size_t i = 0; i < std::min(call.inputs.size(), known); ++i)
    if (call.inputs[i].name.empty()) call.inputs[i].name = info->arguments[i].name;
  return call;
}

Values Executor::call_higher_order(const Node& node) {
  const std::string_view name = *higher_order_name(node.target);
  const auto rest = [&](size_t from) {
    Values list;
    for (size_t i = from; i < node.inputs.size(); ++i) list.push_back(value(operand(node, i)));
    return list;
  };
  if (name == "wrap_with_set_grad_enabled") {
    const eager::NoGrad mode(number(operand(node, 0)).value().to<double>() != 0);
    return body(operand(node, 1))(rest(2));
  }
  if (name == "wrap_with_autocast") return body(operand(node, 4), true)(rest(5));
  if (name == "invoke_subgraph") return body(operand(node, 0))(rest(2));
  if (name == "print") return {};  // only for debugging in Python
  if (name == "with_effects") {
    const Node call = effect_of(node).value();
    const Values results =
        higher_order_name(call.target) ? call_higher_order(call) : call_operator(call);
    return joined({value(operand(node, 0))}, results);
  }
  if (name == "cond") return call_cond(node);
  if (name == "while_loop") return call_while_loop(node);
  return call_scan(node, name == "scan");
}

Values Executor::call_cond(const Node& node) const {
  const GraphValue predicate = value(operand(node, 0));
  const Body then = body(operand(node, 1)), otherwise = body(operand(node, 2));
  const Values operands = values(operand(node, 3));
  if (const auto* number = std::get_if<Number>(&predicate); number != nullptr && number->is_known())
    return number->value().to<double>() != 0 ? then(operands) : otherwise(operands);

  // a body takes the tensors as arguments; the numbers are captured
  Tensors tensors;
  for (const GraphValue& v : operands)
    if (const auto* tensor = std::get_if<Tensor>(&v)) tensors.push_back(*tensor);
  const auto side = [&](const Body& run) -> eager::Body {
    return [run, operands](const Tensors& given) {
      Values inputs = operands;
      size_t next = 0;
      for (GraphValue& v : inputs)
        if (std::holds_alternative<Tensor>(v)) v = given.at(next++);
      return as_tensors(run(std::move(inputs)));
    };
  };
  return as_values(eager::cond(as_tensors({predicate})[0], side(then), side(otherwise), tensors));
}

Values Executor::call_while_loop(const Node& node) const {
  const Body condition = body(operand(node, 0)), round = body(operand(node, 1));
  const Values additional = values(operand(node, 3));
  const auto run = [&](const Body& graph, const Tensors& carried) {
    return as_tensors(graph(joined(as_values(carried), additional)));
  };
  return as_values(eager::while_loop(
      [&](const Tensors& carried) { return part(run(condition, carried), 0, 1)[0]; },
      [&](const Tensors& carried) { return run(round, carried); },
      as_tensors(values(operand(node, 2)))));
}

Values Executor::call_scan(const Node& node, bool carries) const {
  const Body run = body(operand(node, 0));
  const size_t first = carries ? 1 : 0;
  const Tensors initial = carries ? as_tensors(values(operand(node, 1))) : Tensors{},
                xs = as_tensors(values(operand(node, first + 1)));
  const Values additional = values(operand(node, first + 2));
  const auto step = [run, additional](const Tensors& carried, const Tensors& slices) {
    const Tensors results =
        as_tensors(run(joined(joined(as_values(carried), as_values(slices)), additional)));
    const size_t count = carried.size();
    return eager::Scanned{part(results, 0, count), part(results, count, results.size() - count)};
  };
  const eager::Scanned all = eager::scan(step, initial, xs, false);
  return joined(as_values(all.carried), as_values(all.results));
}

}  // namespace taper::pt2
