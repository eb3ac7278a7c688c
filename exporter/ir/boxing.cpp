#include "taper/exporter/ir/boxing.h"

#include <memory>

namespace taper::ir {

using eager::Boxed;

BoxedArguments::BoxedArguments(const eager::OperatorInfo& info,
                               const std::vector<Argument>& arguments, const Lookup& tensor_of) {
  if (static_cast<int>(arguments.size()) != info.argument_count)
    throw ExportError(std::string(info.name) + ": takes " + std::to_string(info.argument_count) +
                      " arguments, got " + std::to_string(arguments.size()));
  for (size_t i = 0; i < arguments.size(); ++i)
    boxed_.push_back(box(info.arguments[i], arguments[i], tensor_of));
  boxed_.emplace_back();  // an operator without arguments has an address, too
}

Boxed BoxedArguments::box(const Parameter& parameter, const Argument& argument,
                          const Lookup& tensor_of) {
  return std::visit(
      [&](const auto& a) -> Boxed {
        using T = std::decay_t<decltype(a)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return Boxed::absent(parameter.kind, parameter.list);
        } else if constexpr (std::is_same_v<T, Value*>) {
          return Boxed::of(tensors_.emplace_back(tensor_of(a)));
        } else if constexpr (std::is_same_v<T, std::vector<Value*>>) {
          auto& list = tensor_lists_.emplace_back();
          for (Value* v : a) list.push_back(v == nullptr ? eager::Tensor() : tensor_of(v));
          return Boxed::of(list);
        } else if constexpr (std::is_same_v<T, std::vector<Dim>>) {
          if (parameter.symbolic) return Boxed::of(dims_.emplace_back(a));
          auto& list = integers_.emplace_back();
          for (Dim d : a) list.push_back(d.value());
          return Boxed::of(list);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return Boxed::of(std::string_view(a));
        } else {
          return Boxed::of(a);
        }
      },
      argument);
}

namespace {
/// A tensor without elements that has a value's type, layout included.
eager::Tensor typed_tensor(const Type& type) {
  auto impl = std::make_shared<eager::TensorImpl>();
  impl->storage = std::make_shared<eager::Storage>(eager::Storage::Symbolic{});
  impl->ref.dtype = type.dtype;
  impl->symbolic = std::make_unique<Type>(type);
  return eager::Tensor(std::move(impl));
}
}  // namespace

std::vector<Type> infer(const Operator& op, const std::vector<Argument>& arguments,
                        std::vector<Check>& checks) {
  const eager::OperatorInfo& info = eager::info_of(op);
  if (info.symbolic_rule == nullptr)
    throw ExportError(std::string(info.name) + ": this operator has no shape rule");
  BoxedArguments boxed(info, arguments, [](Value* v) { return typed_tensor(v->type); });
  std::vector<Type> types(static_cast<size_t>(info.schema.result_count));
  Facts<Dim> facts;
  if (!info.symbolic_rule(facts, boxed.data(), types.data()) || facts.failed)
    throw ExportError(
        std::string(info.name) + ": " +
        format_message(facts.message != nullptr ? facts.message : "the arguments do not fit",
                       {facts.values[0], facts.values[1], facts.values[2]}));
  if (op.category != Category::view)
    for (Type& t : types) make_dense(t);
  checks.insert(checks.end(), facts.checks.begin(), facts.checks.end());
  return types;
}

namespace {
std::vector<Type> infer_into(Graph& graph, const Operator& op,
                             const std::vector<Argument>& arguments) {
  std::vector<Check> checks;
  std::vector<Type> types = infer(op, arguments, checks);
  for (const Check& c : checks) graph.add_check(c);
  return types;
}
}  // namespace

Node* append(Graph& graph, const Operator& op, std::vector<Argument> arguments, Location location,
             std::string module) {
  const std::vector<Type> types = infer_into(graph, op, arguments);
  return graph.append(op, std::move(arguments), types, location, std::move(module));
}
Node* insert_before(Graph& graph, Node* before, const Operator& op, std::vector<Argument> arguments,
                    Location location, std::string module) {
  const std::vector<Type> types = infer_into(graph, op, arguments);
  return graph.insert_before(before, op, std::move(arguments), types, location, std::move(module));
}

}  // namespace taper::ir
