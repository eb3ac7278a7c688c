#include "taper/exporter/passes/match.h"

namespace taper::passes::match {

using ir::Argument;
using ir::Value;

Value* Match::operator[](const Variable& variable) const {
  const auto at = values_.find(&variable);
  return at == values_.end() ? nullptr : at->second;
}
bool Match::bind(const Variable& variable, Value* value) {
  return values_.try_emplace(&variable, value).first->second == value;
}

namespace {
Value* tensor_in(const Argument& argument) {
  Value* const* value = std::get_if<Value*>(&argument);
  return value == nullptr ? nullptr : *value;
}
}  // namespace

Pattern any(const Variable& variable) {
  return [&variable](const Argument& argument, Match& match) {
    Value* value = tensor_in(argument);
    return value != nullptr && match.bind(variable, value);
  };
}

Pattern constant(const Variable& variable) {
  return [&variable](const Argument& argument, Match& match) {
    Value* value = tensor_in(argument);
    return value != nullptr && value->origin == Value::Origin::constant &&
           match.bind(variable, value);
  };
}

Pattern number(double number) {
  return [number](const Argument& argument, Match&) {
    if (const auto* d = std::get_if<Dim>(&argument))
      return d->is_constant() && static_cast<double>(d->value()) == number;
    if (const auto* b = std::get_if<bool>(&argument)) return *b == (number != 0);
    if (const auto* s = std::get_if<Scalar>(&argument)) return s->to<double>() == number;
    const auto* real = std::get_if<double>(&argument);
    return real != nullptr && *real == number;
  };
}

Pattern absent_or(Pattern pattern) {
  return [pattern = std::move(pattern)](const Argument& argument, Match& match) {
    Value* const* value = std::get_if<Value*>(&argument);
    const bool absent =
        std::holds_alternative<std::monostate>(argument) || (value != nullptr && *value == nullptr);
    return absent || pattern(argument, match);
  };
}

Pattern either(Pattern first, Pattern second) {
  return [first = std::move(first), second = std::move(second)](const Argument& argument,
                                                                Match& match) {
    Match begun = match;
    if (first(argument, match)) return true;
    match = std::move(begun);  // forgets what `first` has bound
    return second(argument, match);
  };
}

Pattern as(const Variable& variable, Pattern pattern) {
  return [&variable, pattern = std::move(pattern)](const Argument& argument, Match& match) {
    return pattern(argument, match) && match.bind(variable, tensor_in(argument));
  };
}

Pattern result_of(const Operator& op, std::vector<std::pair<size_t, Pattern>> arguments) {
  return [&op, arguments = std::move(arguments)](const Argument& argument, Match& match) {
    const Value* value = tensor_in(argument);
    const ir::Node* node = value == nullptr ? nullptr : value->node;
    if (node == nullptr || node->op != &op || value->index != 0) return false;
    for (const auto& [position, pattern] : arguments)
      if (!pattern(node->arguments[position], match)) return false;
    return true;
  };
}

std::optional<Match> find(const Pattern& pattern, const ir::Node& node) {
  Match match;
  if (node.results.empty() || node.result() == nullptr || !pattern(node.result(), match))
    return std::nullopt;
  return match;
}

}  // namespace taper::passes::match
