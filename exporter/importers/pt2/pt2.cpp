#include "taper/exporter/importers/pt2/pt2.h"

#include <algorithm>

#include "taper/exporter/dim/check.h"
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/importers/pt2/model_data.h"
#include "taper/exporter/importers/pt2/targets.h"

namespace taper::pt2 {

using nn::Tensor;

// ---- properties

const std::vector<Input>& Model::inputs() const { return data_->inputs; }
const std::vector<Output>& Model::outputs() const { return data_->outputs; }
std::vector<Dimension> Model::dimensions() const { return dimensions_of(data_->program); }
const std::vector<std::string>& Model::unknown_dims() const { return data_->unknown_dims; }
const std::vector<std::string>& Model::notes() const { return data_->notes; }
const std::vector<std::string>& Model::unread_guards() const { return data_->unread_guards; }
bool Model::is_supported() const { return data_->unsupported.empty(); }
const std::string& Model::torch_version() const { return data_->program.torch_version; }

void Model::visit_members(nn::Members& members) {
  for (size_t i = 0; i < data_->parameters.size(); ++i)
    members.add(data_->parameter_paths[i], data_->parameters[i]);
  for (size_t i = 0; i < data_->buffers.size(); ++i)
    members.add(data_->buffer_paths[i], data_->buffers[i]);
}

// ---- running

namespace {

/// Finds the values of the inputs' symbols in one call, and checks that all sizes fit.
class Binding {
 public:
  explicit Binding(const std::string& model) : model_(model) {}

  /// Binds a size of the input. If `dim` is -1, binds the input's number.
  void bind(int dim, Dim declared, Dim given, const Input& input) {
    if (const Symbol* s = declared.as_symbol(); s != nullptr && !values_.contains(s)) {
      const std::string name = s->name == place_text(input.name, dim) ? "" : " (" + s->name + ")";
      if (proves_less(given, s->minimum) || proves_less(s->maximum, given))
        throw ExportError(model_ + ": input " + input.name + ": " +
                          (dim < 0 ? "the number" : "dimension " + std::to_string(dim)) + name +
                          " is " + given.to_string() + ", and must lie in " +
                          std::to_string(s->minimum) + ".." + std::to_string(s->maximum));
      values_[s] = given;
    }
  }
  void check(Dim declared, Dim given, const Input& input) const {
    const Dim wanted = declared.substitute(values_);
    if (same(wanted, given)) return;
    const std::string message = "input " + input.name + " must be " +
                                eager::to_string(input.sizes) + ": a size is " + given.to_string() +
                                ", and must be " + wanted.to_string();
    if (proves_different(wanted, given)) throw ExportError(model_ + ": " + message);
    if (eager::Recorder* recorder = eager::recorder(); recorder && !proves_equal(wanted, given))
      recorder->assume({Comparison::equal, given, wanted, message});
  }
  void check(const Check& guard) const {
    const Check now{guard.comparison, guard.left.substitute(values_),
                    guard.right.substitute(values_), guard.message};
    if (refutes(now))
      throw ExportError(model_ + ": " + now.message + "; in this call it is " +
                        now.left.to_string() + " and " + now.right.to_string());
    if (eager::Recorder* recorder = eager::recorder()) recorder->assume(now);
  }
  /// A size in this call. Symbols that no input binds stay in it.
  Dim value(Dim declared) const { return declared.substitute(values_); }

 private:
  const std::string& model_;
  Dim::Substitution values_;
};

void show_results(const Node& node, const std::vector<GraphValue>& results,
                  const Observer& observer) {
  const std::optional<std::string> op = operator_name(node.target);
  if (!op) return;  // control flow, whose bodies show their own results, or arithmetic of numbers
  const auto reads_tensor = [](const NamedArgument& input) {
    return std::holds_alternative<TensorName>(input.value);
  };
  const auto first = std::ranges::find_if(node.inputs, reads_tensor);
  const std::string input = first == node.inputs.end() ? "" : name_of(first->value);
  size_t next = 0;
  const auto show = [&](const std::string& name) {
    const auto* tensor = next < results.size() ? std::get_if<Tensor>(&results[next]) : nullptr;
    if (tensor != nullptr)
      observer({name, static_cast<int>(next), *op, input, node.module, location_of(node), *tensor});
    ++next;
  };
  for (const Argument& output : node.outputs) {
    if (const auto* list = std::get_if<std::vector<TensorName>>(&output))
      for (const TensorName& t : *list) show(t.name);
    else
      show(name_of(output));
  }
}

}  // namespace

std::vector<Tensor> Model::forward(const std::vector<Tensor>& inputs, const Observer& observer) {
  const Data& data = *data_;
  std::vector<const Input*> expected;
  for (const Input& input : data.inputs)
    if (input.kind != Input::Kind::constant) expected.push_back(&input);
  if (inputs.size() != expected.size())
    throw ExportError(data.name + ": the model takes " + std::to_string(expected.size()) +
                      " inputs, got " + std::to_string(inputs.size()));
  Binding binding(data.name);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = *expected[i];
    if (!inputs[i].defined())
      throw ExportError(data.name + ": input " + input.name + " is an undefined tensor");
    if (input.kind != Input::Kind::tensor) continue;
    if (inputs[i].dtype() != input.dtype ||
        inputs[i].rank() != static_cast<int>(input.sizes.size()))
      throw ExportError(data.name + ": input " + input.name + " must be " +
                        taper::name_of(input.dtype) + " " + eager::to_string(input.sizes) +
                        ", got " + taper::name_of(inputs[i].dtype()) + " " +
                        eager::to_string(inputs[i].sizes()));
    for (size_t d = 0; d < input.sizes.size(); ++d)
      binding.bind(static_cast<int>(d), input.sizes[d], inputs[i].size(static_cast<int64_t>(d)),
                   input);
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t d = 0; d < expected[i]->sizes.size(); ++d)
      binding.check(expected[i]->sizes[d], inputs[i].size(static_cast<int64_t>(d)), *expected[i]);

  std::vector<GraphValue> values = data.bound;
  std::map<std::string, Tensor> given;  // by the graph's name
  size_t next = 0, user = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const InputSpec& spec = data.program.inputs[i];
    if (spec.kind != InputSpec::Kind::user_input && spec.kind != InputSpec::Kind::constant_input)
      continue;
    const Input& input = data.inputs[user++];
    if (input.kind == Input::Kind::constant) continue;
    const Tensor& tensor = inputs[next++];
    const bool copies = tensor.is_traced() && data.written.contains(input.name);
    if (input.kind == Input::Kind::number) {
      const Dim number =
          eager::element_as_dim(tensor, input.number.lower(), input.number.upper(), {});
      binding.bind(-1, input.number, number, input);
      if (input.number.is_constant() && proves_different(number, input.number))
        throw ExportError(data.name + ": input " + input.name + " must be " +
                          input.number.to_string() + ", it is " + number.to_string());
      values[i] = Number::of(number);
    } else {
      values[i] = given[input.name] = copies ? tensor.clone() : tensor;
    }
  }
  for (const Check& guard : data.guards) binding.check(guard);

  std::map<std::string, Dim> symbols = data.symbols;
  for (auto& [name, symbol] : symbols) symbol = binding.value(symbol);
  for (const Promise& promise : data.assumptions.promises) require(promise, symbols);
  Executor executor(data.program.graph, data.assumptions, std::move(symbols));
  executor.refuse(data.unsupported);
  if (observer)
    executor.observe([observer](const Node& node, const std::vector<GraphValue>& results) {
      show_results(node, results, observer);
    });
  const std::vector<GraphValue> results = executor.run(std::move(values));

  std::vector<Tensor> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputSpec& spec = data.program.outputs[i];
    using Kind = OutputSpec::Kind;
    const auto* tensor = std::get_if<Tensor>(&results[i]);
    if (spec.kind == Kind::token) continue;
    if (spec.kind == Kind::buffer_mutation || spec.kind == Kind::parameter_mutation) {
      eager::NoGrad guard;
      Tensor(data.tensors.at(spec.target)).copy_(*tensor);
    } else if (spec.kind == Kind::user_input_mutation) {
      given.at(spec.target).copy_(*tensor);
    } else if (tensor != nullptr) {
      outputs.push_back(*tensor);
    } else if (const auto* number = std::get_if<Number>(&results[i])) {
      const PlaceScope scope{Location()};  // this belongs to no line of the model
      outputs.push_back(number->as_tensor(number->dtype()));
    } else {
      outputs.emplace_back();
    }
  }
  if (eager::recorder() != nullptr)
    for (const Input* input : expected)
      if (data.written.contains(input->name)) outputs.push_back(given.at(input->name));
  return outputs;
}

std::function<std::vector<Tensor>(const std::vector<Tensor>&)> Model::function(
    const Observer& observer) {
  return [model = *this, observer](const std::vector<Tensor>& inputs) mutable {
    std::vector<Tensor> outputs = model.forward(inputs, observer);
    std::erase_if(outputs, [](const Tensor& t) { return !t.defined(); });
    if (eager::recorder() == nullptr) {  // in a trace they are outputs already
      size_t next = 0;
      for (const Input& input : model.data_->inputs) {
        if (input.kind == Input::Kind::constant) continue;
        const Tensor& tensor = inputs[next++];
        if (model.data_->written.contains(input.name)) outputs.push_back(tensor);
      }
    }
    return outputs;
  };
}

std::vector<taper::InputSpec> Model::input_specs() const {
  std::vector<taper::InputSpec> specs;
  for (const Input& input : data_->inputs) {
    if (input.kind == Input::Kind::tensor)
      specs.push_back(taper::input(input.name, input.sizes, input.dtype));
    else if (input.kind == Input::Kind::number)
      specs.push_back(taper::input(input.name, {}, DType::i64));
  }
  return specs;
}

std::vector<std::string> Model::output_names() const {
  std::vector<std::string> names;
  for (const Output& output : data_->outputs)
    if (output.kind != Output::Kind::none) names.push_back(output.name);
  for (const Input& input : data_->inputs) {
    if (!data_->written.contains(input.name)) continue;
    std::string name = input.name + "_mutated";
    while (std::ranges::find(names, name) != names.end()) name += "_";
    names.push_back(name);
  }
  return names;
}

}  // namespace taper::pt2
