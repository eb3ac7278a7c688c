#include "taper/runtime/extension/llm/chat/evaluator.h"

#include "taper/runtime/extension/llm/chat/operations.h"
#include "taper/runtime/extension/llm/failure.h"

namespace taper::llm::chat {
namespace {

constexpr int64_t max_steps = 5'000'000;
constexpr size_t steps_of_a_round = 10;  // of a loop
constexpr int max_calls = 100, max_nesting = 1000;

Value or_absent(const ExpressionPtr& node, Evaluator& evaluator, Scope& scope) {
  return node == nullptr ? Value::none() : evaluator.evaluate(*node, scope);
}

void bind_targets(const std::vector<std::string>& targets, const Value& value, Scope& scope) {
  if (targets.size() == 1) return scope.set(targets[0], value);
  const List parts = elements_of(value);
  if (parts.size() != targets.size()) {
    refuse("there are " + std::to_string(targets.size()) + " names for " +
           std::to_string(parts.size()) + " values");
  }
  for (size_t i = 0; i < targets.size(); ++i) scope.set(targets[i], parts[i]);
}

// What `loop` has in round i.
Value loop_of(const List& items, size_t i) {
  const auto count = static_cast<int64_t>(items.size()), index = static_cast<int64_t>(i);
  const Function cycle = [index](const Arguments& arguments) -> Value {
    if (arguments.positional.empty()) refuse("loop.cycle needs values");
    return arguments.positional[static_cast<size_t>(index) % arguments.positional.size()];
  };
  return Dict{{"index", index + 1},
              {"index0", index},
              {"revindex", count - index},
              {"revindex0", count - index - 1},
              {"first", i == 0},
              {"last", index + 1 == count},
              {"length", count},
              {"previtem", i > 0 ? items[i - 1] : Value()},
              {"nextitem", i + 1 < items.size() ? items[i + 1] : Value()},
              {"cycle", cycle}};
}

}  // namespace

class Evaluator::Depth {
 public:
  explicit Depth(Evaluator& evaluator) : depth_(evaluator.depth_) {
    if (depth_ >= max_calls) refuse("calls are nested deeper than " + std::to_string(max_calls));
    ++depth_;
  }
  ~Depth() { --depth_; }

 private:
  int& depth_;
};

// Ends with a message before the stack is full.
class Evaluator::Nesting {
 public:
  explicit Nesting(Evaluator& evaluator) : nesting_(evaluator.nesting_) {
    if (nesting_ >= max_nesting) {
      refuse("blocks and expressions are nested deeper than " + std::to_string(max_nesting));
    }
    ++nesting_;
  }
  ~Nesting() { --nesting_; }

 private:
  int& nesting_;
};

void Evaluator::count_steps(size_t count) {
  steps_ += static_cast<int64_t>(count);
  if (steps_ > max_steps) {
    refuse("the template takes more than " + std::to_string(max_steps) + " steps");
  }
}

void Evaluator::append(std::string& out, std::string_view text) {
  written_ += text.size();
  if (written_ > max_text)
    refuse("the template makes more than " + std::to_string(max_text) + " bytes");
  out += text;
}

std::string Evaluator::render(const Block& block, Scope& scope) { return capture(block, scope); }

std::string Evaluator::capture(const Block& block, Scope& scope) {
  std::string out;
  run(block, scope, out);
  return out;
}

Evaluator::Flow Evaluator::run(const Block& block, Scope& scope, std::string& out) {
  const Nesting nesting(*this);
  for (const auto& statement : block) {
    count_steps(1);
    Flow flow = Flow::on;
    try {
      flow = run(*statement, scope, out);
    } catch (Failure& failure) {
      // the innermost statement names its line
      if (failure.why.compare(0, 5, "line ") != 0) {
        failure.why = "line " + std::to_string(statement->line) + ": " + failure.why;
      }
      throw;
    }
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Evaluator::Flow Evaluator::run(const Statement& statement, Scope& scope, std::string& out) {
  switch (statement.kind) {
    case Statement::Kind::text:
      append(out, statement.text);
      break;
    case Statement::Kind::output:
      append(out, text_of(evaluate(*statement.expression, scope)));
      break;
    case Statement::Kind::if_else: {
      const bool holds = is_true(evaluate(*statement.condition, scope));
      return run(holds ? statement.body : statement.otherwise, scope, out);
    }
    case Statement::Kind::for_each:
      return run_for(statement, scope, out);
    case Statement::Kind::set:
    case Statement::Kind::set_attribute:
      run_set(statement, scope);
      break;
    case Statement::Kind::macro:
      define_macro(statement, scope);
      break;
    case Statement::Kind::call_block:
      run_call_block(statement, scope, out);
      break;
    case Statement::Kind::filter_block: {
      Scope inner(&scope);
      const Value body = capture(statement.body, inner);
      append(out, text_of(evaluate_filter(*statement.condition, &body, scope)));
      break;
    }
    case Statement::Kind::with: {
      Scope inner(&scope);
      for (size_t i = 0; i < statement.targets.size(); ++i) {
        inner.set(statement.targets[i], evaluate(*statement.values[i], scope));
      }
      return run(statement.body, inner, out);
    }
    case Statement::Kind::scope: {
      Scope inner(&scope);
      return run(statement.body, inner, out);
    }
    case Statement::Kind::leave:
      return Flow::leave;
    case Statement::Kind::next:
      return Flow::next;
  }
  return Flow::on;
}

Evaluator::Flow Evaluator::run_for(const Statement& statement, Scope& scope, std::string& out) {
  List items = elements_of(evaluate(*statement.expression, scope));
  if (statement.condition != nullptr) {
    List kept;
    for (Value& value : items) {
      Scope inner(&scope);
      bind_targets(statement.targets, value, inner);
      if (is_true(evaluate(*statement.condition, inner))) kept.push_back(std::move(value));
    }
    items = std::move(kept);
  }
  for (size_t i = 0; i < items.size(); ++i) {
    count_steps(steps_of_a_round);
    Scope inner(&scope);
    inner.set("loop", loop_of(items, i));
    bind_targets(statement.targets, items[i], inner);
    if (run(statement.body, inner, out) == Flow::leave) break;
  }
  if (!items.empty()) return Flow::on;
  Scope inner(&scope);
  return run(statement.otherwise, inner, out);
}

void Evaluator::run_set(const Statement& statement, Scope& scope) {
  if (statement.expression == nullptr) {
    Scope inner(&scope);
    Value body = capture(statement.body, inner);
    if (statement.condition != nullptr) body = evaluate_filter(*statement.condition, &body, scope);
    return scope.set(statement.targets[0], body);
  }
  const Value value = evaluate(*statement.expression, scope);
  if (statement.kind == Statement::Kind::set) return bind_targets(statement.targets, value, scope);
  const Value* found = scope.find(statement.targets[0]);
  if (found == nullptr || !found->is(Value::Kind::name_space)) {
    refuse("cannot assign attribute on non-namespace object");
  }
  Value space = *found;  // shares its members
  for (auto& [name, member] : space.changeable_dict()) {
    if (name.string() == statement.targets[1]) {
      member = value;
      return;
    }
  }
  space.changeable_dict().emplace_back(statement.targets[1], value);
}

Value Evaluator::macro_of(const Parameters& parameters, const Block& body, const std::string& name,
                          const Scope& scope) {
  // the scope outlives the value: of macros it is the outermost one, and a caller ends with its
  // block
  return Function([this, &parameters, &body, name, &scope](const Arguments& arguments) -> Value {
    const Depth depth(*this);
    Scope inner(&scope);
    if (arguments.positional.size() > parameters.names.size()) {
      refuse("macro '" + name + "' takes not more than " + std::to_string(parameters.names.size()) +
             " argument(s)");
    }
    for (size_t i = 0; i < parameters.names.size(); ++i) {
      const std::string& parameter = parameters.names[i];
      Value value = Value::undefined("parameter '" + parameter + "' was not provided");
      if (parameters.defaults[i] != nullptr) value = evaluate(*parameters.defaults[i], inner);
      if (i < arguments.positional.size()) value = arguments.positional[i];
      for (const auto& [given, named] : arguments.named) {
        if (given == parameter) value = named;
      }
      inner.set(parameter, value);
    }
    for (const auto& [given, named] : arguments.named) {
      if (given == "caller") inner.set("caller", named);
    }
    return capture(body, inner);
  });
}

void Evaluator::define_macro(const Statement& statement, Scope& scope) {
  // A macro sees the names of the whole template, not those of a loop that may have ended.
  scope.set(statement.text,
            macro_of(statement.parameters, statement.body, statement.text, scope.outermost()));
}

void Evaluator::run_call_block(const Statement& statement, Scope& scope, std::string& out) {
  const Value callee = evaluate(*statement.expression->parts[0], scope);
  if (!callee.is(Value::Kind::function)) refuse("the block calls what is not a macro");
  Arguments arguments = arguments_of(*statement.expression, 1, scope);
  // a namespace may keep the function, but the names that it sees end with this block
  const Value body = macro_of(statement.parameters, statement.body, "caller", scope);
  const auto alive = std::make_shared<bool>(true);
  arguments.named.emplace_back("caller", Function([body, alive](const Arguments& given) -> Value {
                                 if (!*alive)
                                   refuse("caller() is called behind the end of its block");
                                 return body.function()(given);
                               }));
  struct End {
    bool& alive;
    ~End() { alive = false; }
  } const end{*alive};
  append(out, text_of(callee.function()(arguments)));
}

List Evaluator::evaluate_all(const Expression& node, size_t first, Scope& scope) {
  List values;
  for (size_t i = first; i < node.parts.size(); ++i)
    values.push_back(evaluate(*node.parts[i], scope));
  return values;
}

Arguments Evaluator::arguments_of(const Expression& node, size_t first, Scope& scope) {
  Arguments arguments;
  arguments.positional = evaluate_all(node, first, scope);
  for (const auto& [name, value] : node.named) {
    arguments.named.emplace_back(name, evaluate(*value, scope));
  }
  return arguments;
}

// A long text or list counts as many steps: it was copied, or will be.
Value Evaluator::evaluate(const Expression& node, Scope& scope) {
  const Nesting nesting(*this);
  Value value = evaluate_node(node, scope);
  size_t size = 0;
  if (value.is_string()) size = value.string().size() / 64;
  if (value.is_sequence()) size = value.list().size();
  count_steps(1 + size);
  return value;
}

Value Evaluator::evaluate_node(const Expression& node, Scope& scope) {
  switch (node.kind) {
    case Expression::Kind::constant:
      return node.constant;
    case Expression::Kind::name: {
      const Value* found = scope.find(node.text);
      return found != nullptr ? *found : Value::undefined("'" + node.text + "' is undefined");
    }
    case Expression::Kind::list:
      return evaluate_all(node, 0, scope);
    case Expression::Kind::tuple:
      return Value::tuple(evaluate_all(node, 0, scope));
    case Expression::Kind::dict:
      return evaluate_dict(node, scope);
    case Expression::Kind::attribute:
      return attribute(evaluate(*node.parts[0], scope), node.text);
    case Expression::Kind::index:
      return item(evaluate(*node.parts[0], scope), evaluate(*node.parts[1], scope));
    case Expression::Kind::slice:
      return slice(evaluate(*node.parts[0], scope), or_absent(node.parts[1], *this, scope),
                   or_absent(node.parts[2], *this, scope), or_absent(node.parts[3], *this, scope));
    case Expression::Kind::call:
      return evaluate_call(node, scope);
    case Expression::Kind::filter:
      return evaluate_filter(node, nullptr, scope);
    case Expression::Kind::test:
      return apply_test(node.text, evaluate(*node.parts[0], scope), arguments_of(node, 1, scope));
    case Expression::Kind::unary:
      return evaluate_unary(node, scope);
    case Expression::Kind::binary: {
      const Value left = evaluate(*node.parts[0], scope);
      return binary(node.text, left, evaluate(*node.parts[1], scope));
    }
    case Expression::Kind::comparison:
      return evaluate_comparison(node, scope);
    case Expression::Kind::logical_and:
    case Expression::Kind::logical_or: {
      Value left = evaluate(*node.parts[0], scope);
      const bool decided = is_true(left) == (node.kind == Expression::Kind::logical_or);
      return decided ? left : evaluate(*node.parts[1], scope);
    }
    case Expression::Kind::conditional:
      if (is_true(evaluate(*node.parts[1], scope))) return evaluate(*node.parts[0], scope);
      return node.parts[2] == nullptr ? Value() : evaluate(*node.parts[2], scope);
  }
  return Value();
}

Value Evaluator::evaluate_dict(const Expression& node, Scope& scope) {
  Dict dict;
  for (size_t i = 0; i + 1 < node.parts.size(); i += 2) {
    Value key = evaluate(*node.parts[i], scope), value = evaluate(*node.parts[i + 1], scope);
    bool known = false;
    for (auto& [name, old] : dict) {
      if (!equal(name, key)) continue;
      old = value;
      known = true;
    }
    if (!known) dict.emplace_back(std::move(key), std::move(value));
  }
  return dict;
}

Value Evaluator::evaluate_unary(const Expression& node, Scope& scope) {
  const Value value = evaluate(*node.parts[0], scope);
  if (node.text == "not") return !is_true(value);
  if (!value.is_number()) {
    refuse(value.is_undefined()
               ? value.reason()
               : "bad operand type for unary " + node.text + ": '" + type_name(value) + "'");
  }
  if (value.is_integral()) return binary(node.text, Value(0), value);
  return node.text == "-" ? -value.real() : value.real();
}

Value Evaluator::evaluate_comparison(const Expression& node, Scope& scope) {
  Value left = evaluate(*node.parts[0], scope);
  for (size_t i = 0; i < node.operators.size(); ++i) {
    Value right = evaluate(*node.parts[i + 1], scope);
    const std::string& op = node.operators[i];
    const bool holds = op == "=="       ? equal(left, right)
                       : op == "!="     ? !equal(left, right)
                       : op == "<"      ? less(left, right)
                       : op == ">"      ? less(right, left)
                       : op == "<="     ? less(left, right) || equal(left, right)
                       : op == ">="     ? less(right, left) || equal(left, right)
                       : op == "not in" ? !contains(right, left)
                                        : contains(right, left);
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

Value Evaluator::evaluate_call(const Expression& node, Scope& scope) {
  const Value callee = evaluate(*node.parts[0], scope);
  if (callee.is_undefined()) refuse(callee.reason());
  if (!callee.is(Value::Kind::function)) {
    refuse(std::string("'") + type_name(callee) + "' object is not callable");
  }
  const Arguments arguments = arguments_of(node, 1, scope);
  return callee.function()(arguments);
}

Value Evaluator::evaluate_filter(const Expression& node, const Value* input, Scope& scope) {
  // a block's filter has its input at the bottom of the chain
  if (node.parts[0] == nullptr) {
    return apply_filter(node.text, *input, arguments_of(node, 1, scope));
  }
  const bool in_chain = input != nullptr && node.parts[0]->kind == Expression::Kind::filter;
  const Value value =
      in_chain ? evaluate_filter(*node.parts[0], input, scope) : evaluate(*node.parts[0], scope);
  return apply_filter(node.text, value, arguments_of(node, 1, scope));
}

}  // namespace taper::llm::chat
