// Calls whose arguments or results have more than max_rank dimensions: the operator runs on tensors
// in which neighbouring dimensions are joined. The sizes of results are those that the file
// records.
#include <algorithm>

#include "taper/exporter/eager/ops/view.h"
#include "taper/exporter/importers/pt2/executor.h"
#include "taper/exporter/importers/pt2/targets.h"

namespace taper::pt2 {
namespace {

using eager::Dims;
using eager::OperatorInfo;
using eager::Tensor;

constexpr size_t most = static_cast<size_t>(max_rank);

GraphValue with_sizes(const Tensor& elements, const Dims& sizes) {
  if (sizes.size() > most) return HighRank{elements, sizes};
  return eager::reshape(elements, sizes);
}

std::vector<TensorName> results_of(const Node& node) {
  std::vector<TensorName> names;
  for (const Argument& output : node.outputs)
    for (const TensorName& name : tensors_in(output)) names.push_back(name);
  return names;
}

NamedArgument* find(Node& node, std::string_view name) {
  const auto at = std::ranges::find(node.inputs, name, &NamedArgument::name);
  return at == node.inputs.end() ? nullptr : &*at;
}

/// The integers of an argument. The row's default if it is not given; none if that is no integer.
std::vector<int64_t> integers_of(Node& node, const OperatorInfo& info, std::string_view name) {
  const NamedArgument* given = find(node, name);
  if (given == nullptr) {
    const int at = info.schema.find(name);
    if (at < 0 || info.schema.parameters[at].list || !info.schema.parameters[at].has_fallback)
      return {};
    eager::OwnedArguments owned;
    const eager::Boxed fallback = owned.fallback(info.schema.parameters[at]);
    return fallback.present ? std::vector<int64_t>{fallback.integer()} : std::vector<int64_t>{};
  }
  if (const auto* one = std::get_if<int64_t>(&given->value)) return {*one};
  std::vector<int64_t> integers;
  if (const auto* list = std::get_if<IntegerList>(&given->value))
    for (const auto& element : *list)
      if (const auto* number = std::get_if<int64_t>(&element)) integers.push_back(*number);
  return integers;
}

/// Dimensions, which may be negative, as positions below `rank`.
std::vector<int64_t> positions(std::vector<int64_t> dims, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  for (int64_t& d : dims) {
    if (d < -n || d >= n)
      throw ExportError("dim " + std::to_string(d) + " is outside [" + std::to_string(-n) + ", " +
                        std::to_string(n) + ")");
    if (d < 0) d += n;
  }
  return dims;
}

/// The order of dimensions that permute, transpose, swapaxes or movedim ask for.
std::vector<int64_t> order_of(Node node, const OperatorInfo& info, size_t rank) {
  const auto dims = [&](std::string_view name) {
    return positions(integers_of(node, info, name), rank);
  };
  std::vector<int64_t> order;
  if (info.op == &ops::permute) {
    order = dims("dims");
  } else if (info.op == &ops::movedim_int || info.op == &ops::movedim_intlist) {
    const std::vector<int64_t> from = dims("source"), to = dims("destination");
    if (from.size() != to.size()) throw ExportError("moves other dimensions than it names");
    order.assign(rank, -1);
    for (size_t i = 0; i < from.size(); ++i) order[static_cast<size_t>(to[i])] = from[i];
    int64_t next = 0;
    for (int64_t& place : order) {
      while (std::ranges::find(from, next) != from.end()) ++next;
      if (place < 0) place = next++;
    }
  } else {
    const bool axes = info.op == &ops::swapaxes, last = info.op == &ops::mT;
    const std::vector<int64_t> a = last ? positions({-2}, rank) : dims(axes ? "axis0" : "dim0"),
                               b = last ? positions({-1}, rank) : dims(axes ? "axis1" : "dim1");
    for (size_t d = 0; d < rank; ++d) order.push_back(static_cast<int64_t>(d));
    if (a.size() != 1 || b.size() != 1) throw ExportError("lacks its dimensions");
    std::swap(order[static_cast<size_t>(a[0])], order[static_cast<size_t>(b[0])]);
  }
  std::vector<int64_t> sorted = order;
  std::ranges::sort(sorted);
  for (size_t d = 0; d < sorted.size(); ++d)
    if (sorted.size() != rank || sorted[d] != static_cast<int64_t>(d))
      throw ExportError("does not name each dimension once");
  return order;
}

/// Whether PyTorch's result shares the memory of the argument in any case.
bool is_always_view(const Node& node, const OperatorInfo& info) {
  static constexpr const Operator* may_copy[] = {
      &ops::reshape,    &ops::reshape_as, &ops::flatten_using_ints, &ops::ravel,
      &ops::contiguous, &ops::to_dtype,   &ops::to_dtype_layout,    &ops::to_device};
  return node.gives_view || (info.schema.result_count == 1 && info.schema.results[0].alias &&
                             std::ranges::find(may_copy, info.op) == std::end(may_copy));
}

void require_possible(const Dims& joined) {
  if (joined.size() > most)
    throw ExportError("its dimensions join to " + std::to_string(joined.size()) + ", and at most " +
                      std::to_string(max_rank) +
                      " are possible; join neighbouring dimensions with reshape before");
}

}  // namespace

bool Executor::touches_high_rank(const Node& node) const {
  for (const NamedArgument& input : node.inputs)
    for (const TensorName& name : tensors_in(input.value))
      if (const auto at = values_.find(name.name);
          at != values_.end() && std::holds_alternative<HighRank>(at->second))
        return true;
  return std::ranges::any_of(results_of(node), [&](const TensorName& name) {
    const auto at = graph_.tensor_values.find(name.name);
    return at != graph_.tensor_values.end() && at->second.sizes.size() > most;
  });
}

HighRank Executor::of_any_rank(const TensorName& name) const {
  const auto at = values_.find(name.name);
  if (at != values_.end())
    if (const auto* high = std::get_if<HighRank>(&at->second)) return *high;
  const Tensor& t = tensor(name);
  return {t, t.sizes()};
}

/// The value with joined sizes, under a name of its own.
TensorName Executor::hold_joined(const TensorName& name, const Dims& sizes) {
  require_possible(sizes);
  TensorName joined{name.name + " joined"};  // no name in a file has a space
  while (values_.contains(joined.name)) joined.name += "'";
  joined_names_.push_back(joined.name);
  values_[joined.name] = eager::reshape(of_any_rank(name).elements, sizes);
  return joined;
}

/// A tensor without dimensions that repeats its number. It has one dimension.
Tensor Executor::call_fill(const Node& node, const Dims& result) {
  Node one = node;
  for (NamedArgument& input : one.inputs)
    if (auto* name = std::get_if<TensorName>(&input.value))
      *name = hold_joined(*name, {product(of_any_rank(*name).sizes)});
  if (NamedArgument* size = find(one, "size")) size->value = IntegerList();
  const std::vector<GraphValue> results = call_in_full_rank(one);
  return eager::expand(std::get<Tensor>(results.at(0)), {product(result)});
}

std::vector<GraphValue> Executor::call_broadcast(const Node& node, const Dims& result) {
  Node joined_node = node;
  std::vector<TensorName*> names;
  std::vector<Dims> operands;
  for (NamedArgument& input : joined_node.inputs)
    if (auto* name = std::get_if<TensorName>(&input.value)) {
      names.push_back(name);
      operands.push_back(of_any_rank(*name).sizes);
    }
  const std::vector<Dims> joined = join_repeated(operands, result);
  for (size_t i = 0; i < names.size(); ++i)
    // a tensor without dimensions stays one: promotion treats it as a number
    if (!operands[i].empty()) *names[i] = hold_joined(*names[i], joined[i]);
  return call_in_full_rank(joined_node);
}

std::vector<GraphValue> Executor::call_along_dims(const Node& node, const OperatorInfo& info) {
  Node joined_node = node;
  const std::string_view parameter = parameter_of_dims(*info.op).value_or("");
  const std::vector<int64_t> asked = integers_of(joined_node, info, parameter);
  std::vector<int64_t> joined_dims;
  const auto join = [&](TensorName& name) {
    const Dims sizes = of_any_rank(name).sizes;
    // stack puts a dimension between two, and cat, select and the like keep theirs apart
    const bool stacks = info.op == &ops::stack;
    const std::vector<int64_t> dims = positions(asked, sizes.size() + (stacks ? 1 : 0));
    if (stacks) {
      const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(dims.at(0));
      joined_dims = {1};
      name = hold_joined(name, {product({sizes.begin(), middle}), product({middle, sizes.end()})});
      return;
    }
    const Joined joined = join_around(sizes, dims);
    joined_dims.clear();
    for (const int64_t d : dims) joined_dims.push_back(joined.place[static_cast<size_t>(d)]);
    name = hold_joined(name, joined.sizes);
  };
  Argument& first = joined_node.inputs.at(0).value;
  if (auto* one = std::get_if<TensorName>(&first)) join(*one);
  if (auto* many = std::get_if<std::vector<TensorName>>(&first))
    for (TensorName& name : *many) join(name);

  const int at = info.schema.find(parameter);
  if (!joined_dims.empty()) {
    NamedArgument* argument = find(joined_node, parameter);
    if (argument == nullptr)
      argument = &joined_node.inputs.emplace_back(NamedArgument{std::string(parameter), {}});
    if (info.schema.parameters[at].list)
      argument->value = IntegerList(joined_dims.begin(), joined_dims.end());
    else
      argument->value = joined_dims[0];
  }
  return call_in_full_rank(joined_node);
}

std::optional<std::vector<GraphValue>> Executor::call_in_high_rank(const Node& node) {
  if (!touches_high_rank(node)) return std::nullopt;
  const eager::Overload overload = find_runnable(*operator_name(node.target));
  // sizes of high rank are those that the file records, and dtypes do not change
  if (overload.info != nullptr && overload.info->op == &ops::_assert_tensor_metadata)
    return std::vector<GraphValue>();
  const std::optional<Form> form =
      overload.info == nullptr || overload.in_place ? std::nullopt : form_of(*overload.info->op);
  const std::vector<TensorName> names = results_of(node);
  if (!form || names.empty() || node.inputs.empty()) return std::nullopt;
  const std::vector<TensorName> arguments = tensors_in(node.inputs[0].value);
  const bool is_fill = form == Form::fill;
  if (arguments.empty() && !is_fill) return std::nullopt;
  const Dims sizes = recorded_sizes(names[0]);

  std::vector<GraphValue> results;
  switch (*form) {
    case Form::fill:
      results.emplace_back(call_fill(node, sizes));
      break;
    case Form::layout:
      results.emplace_back(of_any_rank(arguments[0]).elements);
      break;
    case Form::permutation: {
      HighRank self = of_any_rank(arguments[0]);
      const std::vector<int64_t> order = order_of(node, *overload.info, self.sizes.size());
      results.emplace_back(permuted(std::move(self), order).elements);
      break;
    }
    case Form::expansion: {
      const HighRank self = of_any_rank(arguments[0]);
      const std::vector<Dims> joined = join_repeated({self.sizes}, sizes);
      require_possible(joined.back());
      results.emplace_back(eager::expand(eager::reshape(self.elements, joined[0]), joined.back()));
      break;
    }
    case Form::broadcast:
      results = call_broadcast(node, sizes);
      break;
    case Form::along_dims:
      results = call_along_dims(node, *overload.info);
      break;
  }
  for (const std::string& name : joined_names_) values_.erase(name);
  joined_names_.clear();
  const auto memory = is_fill ? nullptr : memory_of(of_any_rank(arguments[0]).elements);
  for (size_t i = 0; i < results.size() && i < names.size(); ++i) {
    const auto* elements = std::get_if<Tensor>(&results[i]);
    if (elements == nullptr) continue;
    results[i] = with_sizes(Tensor(*elements), recorded_sizes(names[i]));
    const auto* high = std::get_if<HighRank>(&results[i]);
    const auto& own = memory_of(high != nullptr ? high->elements : std::get<Tensor>(results[i]));
    if (is_always_view(node, *overload.info) && own != memory) copies_.insert(own);
  }
  return results;
}

}  // namespace taper::pt2
