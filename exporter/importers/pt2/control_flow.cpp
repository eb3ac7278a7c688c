// Higher-order operators: their bodies run through eager. Inside a trace branches and loops must be
// decided by numbers that the trace knows; a loop is then unrolled.
#include <algorithm>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/importers/pt2/executor.h"
#include "taper/exporter/importers/pt2/targets.h"

namespace taper::pt2 {
namespace {

using eager::Tensor;
using Values = std::vector<GraphValue>;

constexpr int64_t max_unrolled = 4096;

/// Argument `i` of a call whose operands have no names.
const Argument& operand(const Node& node, size_t i) {
  if (i >= node.inputs.size()) throw ExportError("lacks its operand " + std::to_string(i));
  return node.inputs[i].value;
}

void append(Values& list, const Values& more) { list.insert(list.end(), more.begin(), more.end()); }

const Tensor& tensor_of(const GraphValue& value) {
  const auto* tensor = std::get_if<Tensor>(&value);
  if (tensor == nullptr) throw ExportError("an operand must be a tensor");
  return *tensor;
}

/// Whether a branch or another round is taken.
bool truth(const GraphValue& predicate, std::string_view op, Location here) {
  const Number n = std::holds_alternative<Number>(predicate) ? std::get<Number>(predicate)
                                                             : Number::of(tensor_of(predicate));
  if (!n.is_known())
    throw DataDependentError(
        here, std::string(op) +
                  ": which way it goes depends on the run; programs cannot hold branches and loops "
                  "of imported models yet");
  return n.value().to<double>() != 0;
}

/// How many slices the tensors have, all the same.
int64_t slices_of(const Values& xs, std::string_view op, Location here) {
  if (xs.empty()) throw ExportError("has nothing to go over");
  const Dim count = tensor_of(xs[0]).size(0, here);
  if (!count.is_constant() || count.value() > max_unrolled)
    throw DataDependentError(here, std::string(op) + ": a loop over " + count.to_string() +
                                       " slices cannot be unrolled");
  return count.value();
}

/// Slice `i` of each, without the leading dimension.
Values slices(const Values& xs, int64_t i, Location here) {
  Values result;
  for (const GraphValue& x : xs) result.emplace_back(tensor_of(x).select(0, i, here));
  return result;
}

/// Results of rounds, beside each other, as one tensor each.
class Stacks {
 public:
  void add(const Values& results, size_t from) {
    columns_.resize(results.size() - from);
    for (size_t k = 0; k < columns_.size(); ++k)
      columns_[k].push_back(tensor_of(results[from + k]));
  }
  void append_to(Values& list, Location here) const {
    for (const auto& column : columns_) list.emplace_back(eager::stack(column, 0, here));
  }

 private:
  std::vector<std::vector<Tensor>> columns_;
};

}  // namespace

std::vector<GraphValue> Executor::run_subgraph(const Argument& argument,
                                               std::vector<GraphValue> inputs,
                                               bool follows_dtypes) const {
  const auto* sub = std::get_if<GraphArgument>(&argument);
  if (sub == nullptr) throw ExportError("a subgraph is missing");
  Executor executor(*sub->graph, ranges_);
  executor.follows_dtypes_ = follows_dtypes || follows_dtypes_;
  executor.observe(observer_);
  return executor.run(std::move(inputs));
}

bool is_supported_higher_order(std::string_view name) {
  return name == "cond" || name == "while_loop" || name == "scan" || name == "map_impl" ||
         name == "wrap_with_set_grad_enabled" || name == "wrap_with_autocast";
}

std::vector<GraphValue> Executor::call_higher_order(const Node& node, Location here) {
  const std::string_view name = *higher_order_name(node.target);
  const auto rest = [&](size_t from) {
    Values list;
    for (size_t i = from; i < node.inputs.size(); ++i) list.push_back(value(operand(node, i)));
    return list;
  };
  if (name == "wrap_with_set_grad_enabled") {
    const eager::NoGrad mode(number(operand(node, 0)).value().to<double>() != 0);
    return run_subgraph(operand(node, 1), rest(2));
  }
  if (name == "wrap_with_autocast") return run_subgraph(operand(node, 4), rest(5), true);
  if (name == "cond") {
    const bool taken = truth(value(operand(node, 0)), name, here);
    return run_subgraph(operand(node, taken ? 1 : 2), values(operand(node, 3)));
  }
  if (name == "while_loop") {
    Values carried = values(operand(node, 2));
    const Values additional = values(operand(node, 3));
    for (;;) {
      Values inputs = carried;
      append(inputs, additional);
      if (!truth(run_subgraph(operand(node, 0), inputs).at(0), name, here)) return carried;
      carried = run_subgraph(operand(node, 1), std::move(inputs));
    }
  }
  const bool is_scan = name == "scan";
  Values carried = is_scan ? values(operand(node, 1)) : Values{};
  const Values xs = values(operand(node, is_scan ? 2 : 1)),
               additional = values(operand(node, is_scan ? 3 : 2));
  const size_t carries = carried.size();
  const int64_t count = slices_of(xs, name, here);
  Stacks stacks;
  for (int64_t i = 0; i < count; ++i) {
    Values inputs = carried;
    append(inputs, slices(xs, i, here));
    append(inputs, additional);
    const Values results = run_subgraph(operand(node, 0), std::move(inputs));
    if (results.size() < carries) throw ExportError("its body gives too few results");
    carried.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(carries));
    stacks.add(results, carries);
  }
  stacks.append_to(carried, here);
  return carried;
}

}  // namespace taper::pt2
