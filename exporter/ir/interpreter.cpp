#include "taper/exporter/ir/interpreter.h"

#include "taper/exporter/dim/check.h"
#include "taper/exporter/eager/control_flow.h"
#include "taper/exporter/eager/dispatch.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/control_flow.h"
#include "taper/exporter/ir/delegate.h"

namespace taper::ir {

using eager::Tensor;

Tensor tensor_of(const std::shared_ptr<const Payload>& payload) {
  if (payload->layout != Layout::dense)
    return Tensor::stored(payload->bytes.get(), payload->layout, payload->sizes, payload);
  return Tensor::borrow(const_cast<std::byte*>(payload->bytes.get()), payload->dtype,
                        payload->sizes, payload);
}

std::shared_ptr<const Payload> payload_of(const Tensor& tensor) {
  const Tensor dense = tensor.unpacked().contiguous();
  std::vector<int64_t> sizes;
  for (Dim d : dense.sizes()) sizes.push_back(d.value());
  return Payload::copy(dense.dtype(), std::move(sizes), dense.ref().data);
}

void make_results_dense(const Node& node, std::vector<Tensor>& results) {
  if (node.op->category != Category::composite) return;
  for (Tensor& result : results)
    if (result.defined()) result = result.contiguous();
}

namespace {
/// The element of `tensor` that `symbol` stands for.
Dim element(const Tensor& tensor, int i, Dim symbol) {
  const Tensor one = tensor.rank() == 0 ? tensor : tensor.reshape({-1}).select(0, i);
  return eager::element_as_dim(one, symbol.lower(), symbol.upper(), {});
}
}  // namespace

Tensor Interpreter::value(const Value* v) const {
  auto at = values_.find(v);
  if (at == values_.end()) throw ExportError("%" + v->name + " is used before it is computed");
  return at->second;
}

void Interpreter::define(const Value* v, Tensor tensor) {
  if (observer_) observer_(*v, tensor);
  if (v->users.empty() && !graph_.is_used(v)) return;
  values_[v] = std::move(tensor);
  uses_left_[v] = graph_.is_returned(v) ? -1 : static_cast<int>(v->users.size());  // -1: kept
}

void Interpreter::bind_symbols(const std::vector<Tensor>& inputs) {
  for (const SymbolBinding& s : graph_.symbols()) {
    Dim number;
    if (s.source == SymbolSource::input_extent)
      number = inputs[s.first].size(s.second);
    else if (s.source == SymbolSource::input_number)
      number = element(inputs[s.first], 0, s.symbol);
    else
      continue;  // an element or extent of a value
    bind(s.symbol, number);
  }
}

void Interpreter::bind_elements(const Node* node) {
  for (const SymbolBinding& s : graph_.symbols()) {
    if (s.value == nullptr || s.value->node != node) continue;
    const Tensor tensor = value(s.value);
    bind(s.symbol, s.source == SymbolSource::kernel_extent ? tensor.size(s.second)
                                                           : element(tensor, s.second, s.symbol));
  }
}

void Interpreter::bind(Dim symbol, Dim number) {
  if (proves_less(number, symbol.lower()) || proves_less(symbol.upper(), number))
    throw ExportError(graph_.name() + ": " + symbol.to_string() + " is " + number.to_string() +
                      ", outside [" + std::to_string(symbol.lower()) + ", " +
                      std::to_string(symbol.upper()) + "]");
  symbols_[symbol.as_symbol()] = number;
}

std::vector<Check> Interpreter::test_checks() const {
  std::vector<Check> open;
  for (const Check& c : graph_.checks()) {
    const Check now{c.comparison, c.left.substitute(symbols_), c.right.substitute(symbols_),
                    c.message};
    if (refutes(now))
      throw ExportError(graph_.name() + ": " + c.message + " (" + now.left.to_string() + " and " +
                        now.right.to_string() + ")");
    if (!proves(now)) open.push_back(now);
  }
  return open;
}

Argument Interpreter::with_numbers(const Argument& argument) const {
  if (const auto* d = std::get_if<Dim>(&argument)) return d->substitute(symbols_);
  if (const auto* list = std::get_if<std::vector<Dim>>(&argument)) {
    std::vector<Dim> dims;
    for (Dim d : *list) dims.push_back(d.substitute(symbols_));
    return dims;
  }
  return argument;
}

std::vector<Tensor> Interpreter::call(const Node& node) const {
  const eager::OperatorInfo& info = eager::info_of(*node.op);
  std::vector<Argument> arguments;
  for (const Argument& a : node.arguments) arguments.push_back(with_numbers(a));
  std::vector<Tensor> results(node.results.size());
  BoxedArguments boxed(info, arguments, [this](Value* v) { return value(v); });
  eager::dispatch(info, boxed.data(), results.data(), node.location);
  make_results_dense(node, results);
  return results;
}

std::vector<Tensor> Interpreter::call_control(const Node& node) const {
  // a derivative may run it again when this interpreter is gone
  const auto body = [&](size_t i) {
    return [&graph = *node.bodies[i], symbols = symbols_,
            observer = observer_](const std::vector<Tensor>& inputs) {
      Interpreter interpreter(graph, symbols);
      interpreter.observe(observer);
      return interpreter.run(inputs).outputs;
    };
  };
  const auto tensors = [&](size_t argument) {
    std::vector<Tensor> list;
    for_each_value(node.arguments[argument], [&](const Value* v) { list.push_back(value(v)); });
    return list;
  };
  if (node.op == &ops::cond)
    return eager::cond(tensors(0)[0], body(0), body(1), tensors(1), node.location);
  if (is_delegate(node)) return body(0)(tensors(1));
  std::vector<Tensor> carried = tensors(0);
  const std::vector<Tensor> operands = tensors(1);
  const auto with_operands = [&](const auto& function) {
    return [&operands, function](std::vector<Tensor> inputs) {
      inputs.insert(inputs.end(), operands.begin(), operands.end());
      return function(inputs);
    };
  };
  const auto condition = with_operands(body(0));
  return eager::while_loop([&](const std::vector<Tensor>& inputs) { return condition(inputs)[0]; },
                           with_operands(body(1)), carried, node.location);
}

void Interpreter::run_node(const Node& node) {
  const std::vector<Tensor> results = is_control(node) ? call_control(node) : call(node);
  for_each_value(node, [&](const Value* v) {
    if (--uses_left_[v] == 0)
      values_.erase(v);  // memory as in the program: what nobody needs is freed
  });
  for (size_t i = 0; i < results.size(); ++i)
    if (node.result(i) != nullptr) define(node.result(i), results[i]);
  bind_elements(&node);
}

Interpretation Interpreter::run(const std::vector<Tensor>& inputs) {
  if (inputs.size() != graph_.inputs().size())
    throw ExportError(graph_.name() + ": takes " + std::to_string(graph_.inputs().size()) +
                      " inputs, got " + std::to_string(inputs.size()));
  values_.clear(), uses_left_.clear(), symbols_ = outer_symbols_;
  bind_symbols(inputs);
  test_checks();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value* v = graph_.inputs()[i].value.get();
    if (v == nullptr) continue;
    if (inputs[i].dtype() != v->type.dtype || inputs[i].rank() != v->type.rank)
      throw ExportError(graph_.name() + ": input " + graph_.inputs()[i].name + " must be " +
                        to_string(v->type));
    for (int k = 0; k < v->type.rank; ++k)
      if (proves_different(inputs[i].size(k), v->type.sizes[k].substitute(symbols_)))
        throw ExportError(graph_.name() + ": input " + graph_.inputs()[i].name + " must be " +
                          to_string(v->type) + ", not " + eager::to_string(inputs[i].sizes()));
    define(v, inputs[i]);
  }
  for (const State& s : graph_.states()) {
    auto given = states_.find(s.path);
    if (given != states_.end())
      define(s.value.get(), given->second);
    else if (s.initial != nullptr)
      define(s.value.get(), tensor_of(s.initial));
    else {
      std::vector<int64_t> sizes;
      for (int i = 0; i < s.value->type.rank; ++i) sizes.push_back(s.value->type.sizes[i].value());
      define(s.value.get(), Tensor::empty(sizes, s.value->type.dtype).zero_());
    }
  }
  for (const Constant& c : graph_.constants()) define(c.value.get(), tensor_of(c.payload));
  bind_elements(nullptr);
  test_checks();
  for (const Node& n : graph_.nodes()) run_node(n);
  const std::vector<Check> open = test_checks();
  if (eager::Recorder* recorder = eager::recorder())
    for (const Check& check : open) recorder->assume(check);

  Interpretation result;
  for (const Output& o : graph_.outputs()) {
    result.outputs.push_back(o.value != nullptr ? value(o.value) : Tensor());
    result.numbers.push_back(o.number.substitute(symbols_));
  }
  for (const Write& w : graph_.writes()) result.written_states[w.state->path] = value(w.value);
  return result;
}

}  // namespace taper::ir
