// torch.vmap in a plain export: the operators of the function, between calls that give a tensor a
// level and take it away again. A level stands for a dimension that the operators do not see.
//
// A value with levels has a leading dimension for each of them, the outermost first. Pointwise
// operators and look-ups compute with the whole tensor. Any other operator runs once for each
// element of each level, as `map` does.
#include <algorithm>
#include <set>

#include "taper/exporter/eager/control_flow.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/importers/pt2/elementwise.h"
#include "taper/exporter/importers/pt2/executor.h"
#include "taper/exporter/importers/pt2/targets.h"

namespace taper::pt2 {
namespace {

using eager::Tensor;
using Levels = std::vector<int64_t>;
using Tensors = std::vector<Tensor>;
using Values = std::vector<GraphValue>;

constexpr std::string_view vmap_prefix = "torch._functorch.predispatch.";
constexpr std::string_view vmap_functions[] = {"_add_batch_dim", "_remove_batch_dim",
                                               "_vmap_decrement_nesting", "_vmap_increment_nesting",
                                               "lazy_load_decompositions"};
constexpr const char* vmap_remedy =
    "; call run_decompositions() on the exported program before saving it";

template <class F>
void each_tensor(const Node& node, F&& f) {
  for (const NamedArgument& input : node.inputs) {
    if (const auto* one = std::get_if<TensorName>(&input.value)) f(input, one->name);
    if (const auto* many = std::get_if<std::vector<TensorName>>(&input.value))
      for (const TensorName& t : *many)
        if (!t.name.empty()) f(input, t.name);
  }
}

/// Whether every tensor in the node's lists is given: `x[i, j]`, but not `x[:, j]`.
bool has_whole_lists(const Node& node) {
  return std::ranges::none_of(node.inputs, [](const NamedArgument& input) {
    const auto* many = std::get_if<std::vector<TensorName>>(&input.value);
    return many != nullptr &&
           std::ranges::any_of(*many, [](const TensorName& t) { return t.name.empty(); });
  });
}

int64_t from_front(int64_t dim, int64_t rank) { return dim < 0 ? dim + rank : dim; }

/// A tensor with the levels of `all` and with `rank` dimensions behind them. New ones have size 1.
Tensor aligned(Tensor tensor, const Levels& has, const Levels& all, int64_t rank) {
  const int64_t missing = rank - (tensor.rank() - static_cast<int64_t>(has.size()));
  for (size_t i = 0; i < all.size(); ++i)
    if (std::ranges::find(has, all[i]) == has.end())
      tensor = eager::unsqueeze(tensor, static_cast<int64_t>(i));
  for (int64_t i = 0; i < missing; ++i)
    tensor = eager::unsqueeze(tensor, static_cast<int64_t>(all.size()));
  return tensor;
}

/// An operand of a call that runs once for each element of each level.
struct Operand {
  GraphValue value;
  Levels levels;
};

/// Runs `body` for each element of the levels that the operands have, and stacks the results.
Tensors map_levels(const std::function<Values(Values)>& body, const std::vector<Operand>& operands,
                   const Levels& levels) {
  if (levels.empty()) {
    Values values;
    for (const Operand& o : operands) values.push_back(o.value);
    Tensors results;
    for (const GraphValue& value : body(std::move(values))) {
      const auto* tensor = std::get_if<Tensor>(&value);
      if (tensor == nullptr) throw ExportError("inside of torch.vmap, gives no tensor");
      results.push_back(*tensor);
    }
    return results;
  }
  const auto is_sliced = [level = levels.front()](const Operand& o) {
    return !o.levels.empty() && o.levels.front() == level;
  };
  Tensors sliced;
  for (const Operand& o : operands)
    if (is_sliced(o)) sliced.push_back(std::get<Tensor>(o.value));
  const Levels rest(levels.begin() + 1, levels.end());
  // a derivative may run this again when the executor is gone, so nothing is captured by reference
  return eager::map(
      [body, operands, rest, is_sliced](const Tensors& slices) {
        std::vector<Operand> inner = operands;
        size_t next = 0;
        for (Operand& o : inner)
          if (is_sliced(o)) o = {slices.at(next++), Levels(o.levels.begin() + 1, o.levels.end())};
        return map_levels(body, inner, rest);
      },
      sliced);
}

/// A graph of one node, which takes `inputs`.
std::shared_ptr<const Graph> alone(const Graph& graph, const Node& node,
                                   std::vector<Argument> inputs) {
  auto one = std::make_shared<Graph>();
  one->inputs = std::move(inputs);
  one->nodes = {node};
  for (const Argument& output : node.outputs) {
    const auto* many = std::get_if<std::vector<TensorName>>(&output);
    if (many == nullptr)
      one->outputs.push_back(output);
    else
      one->outputs.insert(one->outputs.end(), many->begin(), many->end());
  }
  const auto describe = [&](const std::string& name) {
    if (const auto at = graph.tensor_values.find(name); at != graph.tensor_values.end())
      one->tensor_values.insert(*at);
    if (const auto at = graph.numbers.find(name); at != graph.numbers.end())
      one->numbers.insert(*at);
  };
  for (const Argument& input : one->inputs) describe(name_of(input));
  for (const Argument& output : one->outputs) describe(name_of(output));
  return one;
}

}  // namespace

bool is_vmap_function(std::string_view target) {
  return target.starts_with(vmap_prefix) &&
         std::ranges::find(vmap_functions, target.substr(vmap_prefix.size())) !=
             std::end(vmap_functions);
}

const Levels& Executor::levels_of(const std::string& name) const {
  static const Levels none;
  const auto at = levels_.find(name);
  return at == levels_.end() ? none : at->second;
}

Levels Executor::levels_of_operands(const Node& node) const {
  std::set<int64_t> all;
  if (!levels_.empty())
    each_tensor(node, [&](const NamedArgument&, const std::string& name) {
      all.insert(levels_of(name).begin(), levels_of(name).end());
    });
  return {all.begin(), all.end()};
}

/// Gives a tensor a level, or takes it away. The other functions only count levels.
Values Executor::call_vmap_function(const Node& node) {
  const bool adds = node.target.ends_with("_add_batch_dim");
  if (!adds && !node.target.ends_with("_remove_batch_dim")) return {};
  if (node.inputs.size() != (adds ? 3u : 4u) || node.outputs.size() != 1)
    throw ExportError("has other arguments than in torch 2.15");
  const auto integer = [&](size_t i) { return number(node.inputs[i].value).value().to<int64_t>(); };
  const auto& name = std::get<TensorName>(node.inputs[0].value);
  Tensor result = tensor(name);
  Levels levels = levels_of(name.name);
  const auto outer = static_cast<int64_t>(levels.size());
  if (adds) {
    result = eager::movedim(result, outer + from_front(integer(1), result.rank() - outer), outer);
    levels.push_back(integer(2));
  } else if (const auto at = std::ranges::find(levels, integer(1)); at != levels.end()) {
    const int64_t dim = from_front(integer(3), result.rank() - outer + 1);
    result = eager::movedim(result, at - levels.begin(), outer - 1 + dim);
    levels.erase(at);
  } else {  // the function gave a value that does not depend on the level
    const int64_t dim = outer + from_front(integer(3), result.rank() - outer + 1);
    eager::Dims sizes = result.sizes();
    sizes.insert(sizes.begin() + dim, number(node.inputs[2].value).dim());
    result = eager::expand(eager::unsqueeze(result, dim), sizes);
  }
  levels_[name_of(node.outputs[0])] = std::move(levels);
  return {result};
}

/// Calls an operator on values that have levels.
Values Executor::call_in_vmap(const Node& node, const Levels& levels) {
  for (const Argument& output : node.outputs) {
    if (const auto* one = std::get_if<TensorName>(&output)) levels_[one->name] = levels;
    if (const auto* many = std::get_if<std::vector<TensorName>>(&output))
      for (const TensorName& t : *many) levels_[t.name] = levels;
  }
  const auto name = operator_name(node.target);
  if (!name) return call_for_each(node, levels);  // a region with a body
  const eager::Overload overload = find_runnable(*name);
  const Operator* op = overload.info->op;
  if (op == &ops::_assert_tensor_metadata) return {};
  if (is_elementwise(*op)) return call_aligned(node, levels, false);
  if (overload.in_place || overload.info->number != nullptr)
    throw ExportError("is not supported inside of torch.vmap" + std::string(vmap_remedy));
  const bool looks_up = op == &ops::index_Tensor && has_whole_lists(node) &&
                        levels_of(name_of(node.inputs.at(0).value)).empty();
  return looks_up ? call_aligned(node, levels, true) : call_for_each(node, levels);
}

/// Calls an operator that broadcasts its operands; if it `looks_up`, all but the first.
Values Executor::call_aligned(const Node& node, const Levels& levels, bool looks_up) {
  std::set<std::string> names;
  int64_t rank = 0;
  each_tensor(node, [&](const NamedArgument& input, const std::string& name) {
    if (looks_up && &input == node.inputs.data()) return;
    names.insert(name);
    const auto outer = static_cast<int64_t>(levels_of(name).size());
    rank = std::max(rank, tensor({name}).rank() - outer);
  });
  Node call = node;  // it reads the aligned tensors by other names
  const auto other_name = [](const std::string& name) { return name + "@aligned"; };
  for (const std::string& name : names)
    values_[other_name(name)] = aligned(tensor({name}), levels_of(name), levels, rank);
  for (size_t i = looks_up ? 1 : 0; i < call.inputs.size(); ++i) {
    if (auto* one = std::get_if<TensorName>(&call.inputs[i].value))
      one->name = other_name(one->name);
    if (auto* many = std::get_if<std::vector<TensorName>>(&call.inputs[i].value))
      for (TensorName& t : *many) t.name = other_name(t.name);
  }
  Values results = call_operator(call);
  for (const std::string& name : names) values_.erase(other_name(name));
  if (find_runnable(*operator_name(node.target)).in_place) return results;
  // a level is no dimension for PyTorch's promotion of 0-dim tensors
  if (const auto recorded = graph_.tensor_values.at(name_of(node.outputs.at(0))).dtype.dtype())
    results.at(0) = eager::cast(std::get<Tensor>(results[0]), *recorded);
  return results;
}

/// Calls an operator once for each element of the levels.
Values Executor::call_for_each(const Node& node, const Levels& levels) {
  std::vector<Argument> inputs;
  std::vector<Operand> operands;
  std::set<std::string> seen;
  const auto add = [&](Argument input, const std::string& name) {
    if (!seen.insert(name).second) return;
    operands.push_back({value(input), levels_of(name)});
    inputs.push_back(std::move(input));
  };
  each_tensor(node,
              [&](const NamedArgument&, const std::string& name) { add(TensorName{name}, name); });
  for (const NamedArgument& input : node.inputs) {
    if (const auto* one = std::get_if<NumberName>(&input.value)) add(*one, one->name);
    if (const auto* list = std::get_if<IntegerList>(&input.value))
      for (const auto& element : *list)
        if (const auto* number = std::get_if<NumberName>(&element)) add(*number, number->name);
  }
  const Body run = body(GraphArgument{node.name, alone(graph_, node, std::move(inputs))});
  const Tensors results = map_levels(run, operands, levels);
  return {results.begin(), results.end()};
}

}  // namespace taper::pt2
