#include "taper/exporter/importers/pt2/executor.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <set>

#include "taper/exporter/dim/check.h"
#include "taper/exporter/eager/dispatch.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/numbers.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/importers/pt2/complex128.h"
#include "taper/exporter/importers/pt2/complex_scalars.h"
#include "taper/exporter/importers/pt2/expression.h"
#include "taper/exporter/importers/pt2/targets.h"
#include "taper/exporter/ir/parser.h"

namespace taper::pt2 {
namespace {

using eager::Boxed;
using eager::OperatorInfo;
using eager::Tensor;

/// Argument `name` of a call; nullptr if it was not given.
const Argument* find(const Node& node, std::string_view name) {
  for (const NamedArgument& input : node.inputs)
    if (input.name == name) return &input.value;
  return nullptr;
}

Number number_of(const Boxed& boxed) {
  if (boxed.kind == Kind::real) return Number::of(boxed.real);
  Number n = Number::of(boxed.dim);
  n.kind = boxed.kind;
  return n;
}

/// A message of PyTorch about an assertion that it derived, with the names that people know: "… x.0
/// <= 4" instead of "… s77 <= 4". Other messages come from the user and stay.
std::string with_names(const std::string& message, const std::map<std::string, Dim>& symbols) {
  if (!message.starts_with("Runtime assertion failed for expression ")) return message;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  std::string text;
  for (auto at = message.begin(); at != message.end();) {
    const auto end = std::find_if_not(at, message.end(), is_word);
    const auto symbol = symbols.find(std::string(at, end));
    if (symbol == symbols.end())
      text.append(at, end);
    else
      text += symbol->second.as_symbol() != nullptr || symbol->second.is_constant()
                  ? symbol->second.to_string()
                  : "(" + symbol->second.to_string() + ")";
    at = end;
    if (at != message.end()) text += *at++;
  }
  return text;
}

/// Adds an assertion that depends on the run to the checks of the program.
void assume(const Number& condition, std::string message) {
  eager::Recorder* recorder = eager::recorder();
  if (recorder == nullptr || !condition.condition) return;
  Check check = *condition.condition;
  check.message = std::move(message);
  recorder->assume(check);
}
std::string text_of(const Boxed& b) { return std::string(b.text, b.size); }

/// Adds a check that a tensor's only element is not 0.
void assume_element(const Tensor& tensor, std::string message) {
  const Tensor holds = eager::ne(tensor, Scalar(int64_t{0}));
  const eager::CountBounds bounds(0, 1, "assertion");
  const Dim element = eager::element_as_dim(eager::cast(holds, DType::i64), 0, 1);
  assume(Number::of(Check{Comparison::not_equal, element, 0, ""}), std::move(message));
}

void add_names(const Argument& argument, std::vector<std::string>& names) {
  if (const auto* one = std::get_if<TensorName>(&argument)) names.push_back(one->name);
  if (const auto* number = std::get_if<NumberName>(&argument)) names.push_back(number->name);
  if (const auto* many = std::get_if<std::vector<TensorName>>(&argument))
    for (const TensorName& t : *many) names.push_back(t.name);
  if (const auto* list = std::get_if<IntegerList>(&argument))
    for (const auto& element : *list)
      if (const auto* n = std::get_if<NumberName>(&element)) names.push_back(n->name);
}

/// For each node, the values that no later node uses.
std::vector<std::vector<std::string>> find_last_uses(const Graph& graph) {
  std::vector<std::vector<std::string>> result(graph.nodes.size());
  std::vector<std::string> returned;
  for (const Argument& output : graph.outputs) add_names(output, returned);
  std::set<std::string> needed(returned.begin(), returned.end());
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    std::vector<std::string> names;
    for (const NamedArgument& input : graph.nodes[i].inputs) add_names(input.value, names);
    for (const Argument& output : graph.nodes[i].outputs) add_names(output, names);
    for (const std::string& name : names)
      if (needed.insert(name).second) result[i].push_back(name);
  }
  return result;
}

Dim recorded_size(const SymInt& size, const std::map<std::string, Dim>& symbols) {
  if (const auto* number = std::get_if<int64_t>(&size)) return Dim(*number);
  return parse_expression(std::get<std::string>(size), [&](const std::string& name) {
    const auto known = symbols.find(name);
    if (known == symbols.end()) throw ExportError("its size " + name + " is not known here");
    return known->second;
  });
}

bool reads_any(const Node& node, const std::set<std::string>& values) {
  if (values.empty()) return false;
  std::vector<std::string> names;
  for (const NamedArgument& input : node.inputs) add_names(input.value, names);
  return std::ranges::any_of(names, [&](const std::string& n) { return values.contains(n); });
}

}  // namespace

const Tensor& Executor::tensor(const TensorName& name) const {
  const auto at = values_.find(name.name);
  if (at != values_.end() && std::holds_alternative<HighRank>(at->second))
    throw ExportError("\"" + name.name + "\" has " +
                      std::to_string(std::get<HighRank>(at->second).sizes.size()) +
                      " dimensions, and at most " + std::to_string(max_rank) +
                      " are possible here; join neighbouring dimensions with reshape before");
  if (at == values_.end() || !std::holds_alternative<Tensor>(at->second))
    throw ExportError("\"" + name.name + "\" is no tensor");
  return std::get<Tensor>(at->second);
}

Number Executor::number(const Argument& argument) const {
  if (const auto* integer = std::get_if<int64_t>(&argument)) return Number::of(Dim(*integer));
  if (const auto* real = std::get_if<double>(&argument)) return Number::of(*real);
  if (const auto* boolean = std::get_if<bool>(&argument)) return Number::of(*boolean);
  if (const auto* name = std::get_if<NumberName>(&argument)) {
    const auto at = values_.find(name->name);
    if (at != values_.end() && std::holds_alternative<Number>(at->second))
      return std::get<Number>(at->second);
    throw ExportError("\"" + name->name + "\" is no number");
  }
  throw ExportError("a number is missing");
}

GraphValue Executor::value(const Argument& argument) const {
  if (std::holds_alternative<std::monostate>(argument)) return {};
  if (const auto* name = std::get_if<TensorName>(&argument)) return tensor(*name);
  return number(argument);
}

std::vector<GraphValue> Executor::values(const Argument& list) const {
  std::vector<GraphValue> result;
  if (const auto* tensors = std::get_if<std::vector<TensorName>>(&list)) {
    // operands of control flow may be numbers, even if the file calls the list one of tensors
    for (const TensorName& t : *tensors) {
      const auto at = values_.find(t.name);
      const bool is_number = at != values_.end() && std::holds_alternative<Number>(at->second);
      result.push_back(is_number ? at->second : tensor(t));
    }
  } else if (const auto* integers = std::get_if<IntegerList>(&list)) {
    for (const auto& element : *integers)
      std::visit([&](const auto& e) { result.push_back(number(Argument(e))); }, element);
  } else {
    result.push_back(value(list));
  }
  return result;
}

namespace {

/// If a tensor argument is a number, uses the overload for numbers: add.Scalar instead of
/// add.Tensor. The result is the same, and no tensor is made.
eager::Overload with_scalar(const Node& node, const eager::Overload& overload) {
  const std::string_view name = overload.info->name;
  if (!name.ends_with(".Tensor")) return overload;
  const Argument* other = find(node, "other");
  if (other == nullptr || !is_number(*other) || std::holds_alternative<NumberName>(*other))
    return overload;
  const std::string scalar = std::string(name.substr(0, name.size() - 6)) + "Scalar";
  const eager::Overload found = find_runnable(scalar);
  return found.info == nullptr ? overload : eager::Overload{found.info, overload.in_place};
}

}  // namespace

namespace {

/// The step of `arange(rows, -rows, -1.0, dtype=int64)` as an integer, as the bounds are. Any other
/// argument as it is.
Argument whole_step(const Node& node, const Parameter& parameter, const Argument& given) {
  const auto* step = std::get_if<double>(&given);
  if (step == nullptr || parameter.name != "step" || std::trunc(*step) != *step ||
      std::abs(*step) > 1e9 || find(node, "dtype") == nullptr)
    return given;
  return static_cast<int64_t>(*step);
}

}  // namespace

/// The arguments in the row's order. A number in the place of a tensor takes its dtype from the
/// tensors of the call.
std::vector<Boxed> Executor::bind(const Node& node, const eager::Overload& overload,
                                  eager::OwnedArguments& owned) {
  const OperatorInfo& info = *overload.info;
  for (const NamedArgument& input : node.inputs)
    if (info.schema.find(parameter_name(overload, input.name)) < 0)
      throw ExportError(std::string(info.name) + " has no argument " + input.name);
  DType beside = DType::boolean;
  for (const NamedArgument& input : node.inputs)
    if (const auto* name = std::get_if<TensorName>(&input.value)) {
      const DType d = tensor(*name).dtype();
      if (beside == DType::boolean || (is_floating(d) && !is_floating(beside))) beside = d;
    }

  std::vector<Boxed> boxed;
  for (int i = 0; i < info.argument_count; ++i) {
    const Parameter& p = info.arguments[i];
    const bool written = i == 0 && overload.in_place;
    if (const Argument* given = find(node, written ? "self" : p.name))
      boxed.push_back(box(info, p, whole_step(node, p, *given), beside, owned));
    else if (p.has_fallback || p.optional)
      boxed.push_back(owned.fallback(p));
    else
      throw ExportError(std::string(info.name) + " lacks its argument " + std::string(p.name));
  }
  if (follows_dtypes_ && info.schema.find("dtype") < 0) follow_dtype(node, boxed, owned);
  boxed.emplace_back();  // an operator without arguments needs an address, too
  return boxed;
}

/// A tensor of one complex number, of the sizes that `full` and its relatives name.
Tensor Executor::filled(const OperatorInfo& info, const Node& node, std::complex<double> z) const {
  eager::Dims sizes;
  if (const Argument* size = find(node, "size")) {
    for (const GraphValue& d : values(*size)) sizes.push_back(std::get<Number>(d).dim());
  } else if (info.schema.find("self") >= 0) {
    sizes = tensor(std::get<TensorName>(*find(node, "self"))).sizes();
  }
  return eager::clone(eager::expand(tensor_of(z), sizes));
}

/// Calls an operator that returns a number or asserts something. In a trace, an assertion becomes a
/// check of the program.
std::vector<GraphValue> Executor::call_number_operator(const Node& node, const OperatorInfo& info,
                                                       std::vector<Boxed>& boxed) const {
  if (info.op == &ops::item || info.op == &ops::_local_scalar_dense) {
    const auto* name = node.outputs.empty() ? nullptr : std::get_if<NumberName>(&node.outputs[0]);
    if (const auto known = element(node.inputs.at(0).value)) return {Number::of(*known)};
    return {read(name != nullptr ? name->name : "", boxed[0].tensor())};
  }
  if (info.op == &ops::_assert_scalar) {
    const Number condition = number(node.inputs.at(0).value);
    if (!condition.is_known()) {
      if (condition.tensor.defined())
        assume_element(condition.tensor, with_names(text_of(boxed.at(1)), symbols_));
      else
        assume(condition, with_names(text_of(boxed.at(1)), symbols_));
      return {};
    }
  }
  if (info.op == &ops::_assert_async && boxed[0].tensor().is_traced()) {
    assume_element(boxed[0].tensor(), std::string(eager::nameless_assertion));
    return {};
  }
  if (info.op == &ops::_assert_async_msg && boxed[0].tensor().is_traced()) {
    assume_element(boxed[0].tensor(), text_of(boxed.at(1)));
    return {};
  }
  if (info.op == &ops::_linalg_check_errors && boxed[0].tensor().is_traced()) {
    assume_element(eager::logical_not(eager::any(boxed[0].tensor())),
                   eager::message_of_info(text_of(boxed.at(1))));
    return {};
  }
  const Boxed result = eager::dispatch_number(info, boxed.data(), place());
  return result.present ? std::vector<GraphValue>{number_of(result)} : std::vector<GraphValue>{};
}

std::vector<GraphValue> Executor::call_operator(const Node& node) {
  if (auto results = call_in_high_rank(node)) return *std::move(results);
  return call_in_full_rank(node);
}

std::vector<GraphValue> Executor::call_in_full_rank(const Node& node) {
  const eager::Overload overload =
      for_complex_scalars(node, with_scalar(node, find_runnable(*operator_name(node.target))));
  const OperatorInfo& info = *overload.info;
  if (const std::complex<double>* z = filled_with(node)) return {filled(info, node, *z)};
  eager::OwnedArguments owned;
  std::vector<Boxed> boxed = bind(node, overload, owned);
  if (info.number != nullptr || info.op == &ops::item || info.op == &ops::_local_scalar_dense)
    return call_number_operator(node, info, boxed);

  const bool narrows = touches_complex128(graph_, node);
  if (narrows) narrow_arguments(boxed, owned);
  if (info.op == &ops::as_strided)
    if (const auto* self = std::get_if<TensorName>(&node.inputs.at(0).value))
      require_strides(boxed[0].tensor(), self->name, graph_.tensor_values.at(self->name));
  const ElementSymbol counted = element_in_results(node);
  // bincount counts up to the largest element, and minlength may add to that, so its minimum is not
  // a bound
  const bool all_counted = info.op != &ops::bincount;
  const eager::CountBounds bounds(
      all_counted ? counted.range.minimum.value_or(0) : 0,
      counted.range.maximum.value_or(std::numeric_limits<int64_t>::max()),
      counted.name.empty() ? node.name : counted.name);
  std::vector<GraphValue> values;
  if (overload.in_place) {
    Tensor self = boxed[0].tensor();
    if (copies_.contains(memory_of(self)))
      throw ExportError(
          "writes in place into a view that is a copy here, because results are "
          "row-major: write into the tensor itself, or call contiguous() before view");
    eager::dispatch_in_place(info, boxed.data(), self, place());
    values.emplace_back(std::in_place_type<Tensor>, self);
    return values;
  }
  std::vector<Tensor> results(static_cast<size_t>(info.schema.result_count));
  if (info.schema.result_count == 1 && info.schema.results[0].list)
    results = eager::dispatch_list(info, boxed.data(), place());
  else
    eager::dispatch(info, boxed.data(), results.data(), place());
  if (narrows) widen_results(graph_, node, results);
  if (node.gives_view && memory_of(results[0]) != memory_of(boxed[0].tensor()))
    copies_.insert(memory_of(results[0]));
  for (Tensor& t : results) {
    if (t.defined())
      values.emplace_back(std::in_place_type<Tensor>, std::move(t));
    else
      values.emplace_back();
  }
  return values;
}

// Reads the number `name` from a tensor's only element. In a trace, an integer becomes a symbol,
// which can be a size; reals and booleans stay tensors.
Number Executor::read(const std::string& name, const Tensor& tensor) const {
  if (!tensor.is_traced() || is_floating(tensor.dtype()) || tensor.dtype() == DType::boolean)
    return Number::of(tensor);
  ElementSymbol symbol;
  if (const auto at = graph_.numbers.find(name); at != graph_.numbers.end()) {
    if (const auto* text = std::get_if<std::string>(&at->second)) symbol = element_in(*text);
    // PyTorch found that the model accepts no other number
    if (const auto* only = std::get_if<int64_t>(&at->second); only != nullptr && *only >= 0)
      symbol.range = {*only, *only};
  }
  const int64_t minimum = symbol.range.minimum.value_or(0),
                maximum = symbol.range.maximum.value_or(std::numeric_limits<int64_t>::max());
  const eager::CountBounds bounds(std::max<int64_t>(minimum, 0), maximum,
                                  symbol.name.empty() ? name : symbol.name);
  return Number::of(eager::element_as_dim(tensor, minimum, maximum, place()));
}

// Converts what bodies take and return, which are tensors, back to a number.
GraphValue Executor::as_number(const std::string& name, GraphValue value) const {
  const auto* tensor = std::get_if<Tensor>(&value);
  return tensor == nullptr ? value : read(name, *tensor);
}

void Executor::follow_dtype(const Node& node, std::vector<Boxed>& boxed,
                            eager::OwnedArguments& owned) const {
  const auto* tensor =
      node.outputs.size() == 1 ? std::get_if<TensorName>(&node.outputs[0]) : nullptr;
  if (tensor == nullptr) return;
  const ScalarType recorded = graph_.tensor_values.at(tensor->name).dtype;
  if (!recorded.dtype() || !is_floating(*recorded.dtype())) return;
  for (Boxed& b : boxed)
    if (b.kind == Kind::tensor && !b.list && b.present && is_floating(b.tensor().dtype()))
      b = owned.hold(eager::cast(b.tensor(), *recorded.dtype()));
}

std::vector<GraphValue> Executor::call_number_function(const Node& node) {
  const NamedNumberFunction& function = *find_number_function(node.target);
  std::vector<Number> operands;
  for (const NamedArgument& input : node.inputs) operands.push_back(number(input.value));
  if (static_cast<int>(operands.size()) != function.operands)
    throw ExportError(node.target + " takes " + std::to_string(function.operands) +
                      " numbers, got " + std::to_string(operands.size()));
  return {function.run(operands)};
}

void Executor::define(const Node& node, std::vector<GraphValue> results) {
  size_t next = 0;
  const auto next_result = [&]() -> GraphValue& {
    if (next == results.size())
      throw ExportError("gives " + std::to_string(results.size()) +
                        " results, the program expects more");
    return results[next++];
  };
  const auto define_tensor = [&](const std::string& name) {
    const GraphValue& value = values_[name] = next_result();
    const auto* tensor = std::get_if<Tensor>(&value);
    if (tensor == nullptr) return;
    learn_sizes(name, *tensor);
    if (tensor->is_traced() && eager::recorder() != nullptr) eager::recorder()->name(*tensor, name);
  };
  const auto define_number = [&](const std::string& name) {
    const GraphValue& value = values_[name] = as_number(name, next_result());
    const auto* number = std::get_if<Number>(&value);
    const auto expression = graph_.numbers.find(name);
    if (number == nullptr || !number->is_dim() || expression == graph_.numbers.end()) return;
    if (const auto* text = std::get_if<std::string>(&expression->second))
      learn(*text, number->numerator);
  };
  for (const Argument& output : node.outputs) {
    if (const auto* one = std::get_if<TensorName>(&output))
      define_tensor(one->name);
    else if (const auto* many = std::get_if<std::vector<TensorName>>(&output))
      for (const TensorName& t : *many) define_tensor(t.name);
    else if (const auto* number = std::get_if<NumberName>(&output))
      define_number(number->name);
    else
      ++next;  // an absent result, or a constant one
  }
}

void Executor::run_node(const Node& node) {
  const Location here = location_of(node);
  const PlaceScope scope(here);
  eager::ModuleScope module(node.module);
  std::vector<GraphValue> results;
  try {
    if (find_number_function(node.target) != nullptr)
      results = call_number_function(node);
    else if (is_vmap_function(node.target))
      results = call_vmap_function(node);
    else if (const Levels levels = levels_of_operands(node); !levels.empty())
      results = call_in_vmap(node, levels);
    else if (higher_order_name(node.target))
      results = call_higher_order(node);
    else
      results = call_operator(node);
    if (observer_) observer_(node, results);
    define(node, std::move(results));
    follow_element(node);
  } catch (const EagerError& e) {
    throw EagerError({}, std::string(e.what()) + " (node " + node.describe() +
                             (node.module.empty() ? "" : ", module " + node.module) + ")");
  } catch (const ExportError& e) {
    throw EagerError(here, "node " + node.describe() +
                               (node.module.empty() ? "" : ", module " + node.module) + ": " +
                               e.what());
  }
}

eager::Dims Executor::recorded_sizes(const TensorName& name) const {
  eager::Dims sizes;
  for (const SymInt& size : graph_.tensor_values.at(name.name).sizes)
    sizes.push_back(recorded_size(size, symbols_));
  return sizes;
}

// Defines results of a node that failed: zeros of the types that the file records. The trace
// continues with them, to find further errors. Returns false if sizes are not known.
bool Executor::define_stand_ins(const Node& node) {
  try {
    const auto tensor = [&](const TensorName& t) {
      const TensorMeta& meta = graph_.tensor_values.at(t.name);
      if (!meta.dtype.dtype()) return;  // what reads it fails, and gets stand-ins as well
      const eager::Dims sizes = recorded_sizes(t);
      values_[t.name] = eager::full(sizes, Scalar(int64_t{0}), meta.dtype.dtype().value());
    };
    for (const Argument& output : node.outputs) {
      if (const auto* one = std::get_if<TensorName>(&output)) tensor(*one);
      if (const auto* many = std::get_if<std::vector<TensorName>>(&output))
        for (const TensorName& t : *many) tensor(t);
      if (const auto* number = std::get_if<NumberName>(&output)) {
        const auto& value = graph_.numbers.at(number->name);
        const auto* text = std::get_if<std::string>(&value);
        if (text == nullptr) return false;
        values_[number->name] = Number::of(recorded_size(*text, symbols_));
      }
    }
    return true;
  } catch (const ExportError&) {
    return false;
  } catch (const std::logic_error&) {  // a table has no such entry
    return false;
  }
}

// Returns false if the node failed and the trace may continue. A node that `doubts` reads
// stand-ins, so its failure means nothing.
bool Executor::try_node(const Node& node, bool doubts) {
  try {
    run_node(node);
    return true;
  } catch (const EagerError& e) {
    if (!goes_on_ || eager::recorder() == nullptr) throw;
    if (!doubts) failures_.emplace_back(e.what());
    return false;
  }
}

void Executor::refuse(const std::vector<Unsupported>& parts) {
  for (const Unsupported& part : parts) {
    refusals_.push_back(to_string(part));
    refused_.insert(part.at.begin(), part.at.end());
  }
}

void Executor::fail_with_all() const {
  if (!refusals_.empty()) {
    std::vector<std::string> all = refusals_;
    all.insert(all.end(), failures_.begin(), failures_.end());
    throw EagerError({}, refusal(all));
  }
  if (failures_.size() == 1) throw EagerError({}, failures_[0]);
  std::string message = std::to_string(failures_.size()) + " calls cannot be traced";
  for (const std::string& failure : failures_) message += "\n" + failure;
  throw EagerError({}, message);
}

std::vector<GraphValue> Executor::run(std::vector<GraphValue> inputs) {
  if (inputs.size() != graph_.inputs.size())
    throw ExportError("a graph takes " + std::to_string(graph_.inputs.size()) + " values, got " +
                      std::to_string(inputs.size()));
  values_.clear(), elements_.clear(), levels_.clear(), copies_.clear(), failures_.clear();
  if (!refused_.empty() && eager::recorder() == nullptr) fail_with_all();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (const auto* t = std::get_if<TensorName>(&graph_.inputs[i]))
      values_[t->name] = std::move(inputs[i]);
    else if (const auto* n = std::get_if<NumberName>(&graph_.inputs[i]))
      values_[n->name] = as_number(n->name, std::move(inputs[i]));
  }
  const std::vector<std::vector<std::string>> last_uses = find_last_uses(graph_);
  std::set<std::string> doubtful;  // values that depend on such zeros
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    bool doubts = reads_any(node, doubtful);
    if (refused_.contains(&node) || !try_node(node, doubts)) {
      if (!define_stand_ins(node)) fail_with_all();
      doubts = true;
    }
    std::vector<std::string> results;
    for (const Argument& output : node.outputs) add_names(output, results);
    if (doubts) doubtful.insert(results.begin(), results.end());
    // frees memory as early as a program does
    for (const std::string& name : last_uses[i]) values_.erase(name);
  }
  if (!failures_.empty() || !refused_.empty()) fail_with_all();
  std::vector<GraphValue> outputs;
  for (const Argument& output : graph_.outputs) {
    if (std::holds_alternative<std::string>(output))
      outputs.emplace_back();
    else
      outputs.push_back(value(output));
  }
  values_.clear();
  return outputs;
}

}  // namespace taper::pt2
