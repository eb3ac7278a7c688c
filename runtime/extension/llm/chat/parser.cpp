#include "taper/runtime/extension/llm/chat/parser.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "taper/runtime/extension/llm/failure.h"

namespace taper::llm::chat {

using Kind = Expression::Kind;

// Ends with a message before the stack is full.
class ExpressionParser::Nesting {
 public:
  explicit Nesting(ExpressionParser& parser) : depth_(parser.depth_) {
    constexpr int most = 200;
    if (++depth_ > most) parser.fail("expressions are nested deeper than " + std::to_string(most));
  }
  ~Nesting() { --depth_; }

 private:
  int& depth_;
};

void ExpressionParser::fail(const std::string& why) const {
  refuse("line " + std::to_string(now().line) + ": " + why);
}

bool ExpressionParser::take_op(std::string_view op) {
  if (!at_op(op)) return false;
  take();
  return true;
}

bool ExpressionParser::take_name(std::string_view name) {
  if (!at_name(name)) return false;
  take();
  return true;
}

void ExpressionParser::expect_op(std::string_view op) {
  if (!take_op(op)) fail("'" + std::string(op) + "' is missing before '" + now().text + "'");
}

std::string ExpressionParser::expect_name() {
  if (now().kind != Lexeme::Kind::name) fail("a name is missing before '" + now().text + "'");
  return take().text;
}

void ExpressionParser::expect(Lexeme::Kind kind, const char* what) {
  if (now().kind != kind) fail(std::string(what) + " is missing before '" + now().text + "'");
  take();
}

ExpressionPtr ExpressionParser::make(Kind kind, std::string text) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = now().line;
  node->text = std::move(text);
  return node;
}

ExpressionPtr ExpressionParser::with(Kind kind, std::string text, ExpressionPtr a,
                                     ExpressionPtr b) const {
  ExpressionPtr node = make(kind, std::move(text));
  put(*node, std::move(a));
  if (b != nullptr) put(*node, std::move(b));
  return node;
}

// A chain such as a + b + c is as deep as it is long, and is destroyed from the top down.
void ExpressionParser::count_depth(Expression& node, const Expression& part) const {
  constexpr int most = 1000;
  node.depth = std::max(node.depth, part.depth + 1);
  if (node.depth > most) fail("an expression has more than " + std::to_string(most) + " parts");
}

void ExpressionParser::put(Expression& node, ExpressionPtr part) const {
  if (part != nullptr) count_depth(node, *part);
  node.parts.push_back(std::move(part));
}

bool ExpressionParser::at_end_of_tuple() const {
  return now().kind == Lexeme::Kind::variable_end || now().kind == Lexeme::Kind::block_end ||
         at_op(")") || at_name("in") || at_op("=");
}

ExpressionPtr ExpressionParser::parse_tuple(bool conditional) {
  ExpressionPtr first = parse_expression(conditional);
  if (!at_op(",")) return first;
  ExpressionPtr tuple = with(Kind::tuple, "", std::move(first));
  while (take_op(",")) {
    if (at_end_of_tuple()) break;
    put(*tuple, parse_expression(conditional));
  }
  return tuple;
}

ExpressionPtr ExpressionParser::parse_expression(bool conditional) {
  const Nesting nesting(*this);
  ExpressionPtr node = parse_or();
  while (conditional && take_name("if")) {
    ExpressionPtr choice = with(Kind::conditional, "", std::move(node), parse_or());
    put(*choice, take_name("else") ? parse_expression() : nullptr);
    node = std::move(choice);
  }
  return node;
}

ExpressionPtr ExpressionParser::parse_or() {
  ExpressionPtr node = parse_and();
  while (take_name("or")) node = with(Kind::logical_or, "or", std::move(node), parse_and());
  return node;
}

ExpressionPtr ExpressionParser::parse_and() {
  ExpressionPtr node = parse_not();
  while (take_name("and")) node = with(Kind::logical_and, "and", std::move(node), parse_not());
  return node;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!take_name("not")) return parse_comparison();
  const Nesting nesting(*this);
  return with(Kind::unary, "not", parse_not());
}

ExpressionPtr ExpressionParser::parse_comparison() {
  ExpressionPtr first = parse_sum();
  ExpressionPtr node = make(Kind::comparison);
  for (;;) {
    std::string op;
    for (const char* candidate : {"==", "!=", "<", "<=", ">", ">="}) {
      if (at_op(candidate)) op = candidate;
    }
    if (!op.empty()) {
      take();
    } else if (take_name("in")) {
      op = "in";
    } else if (at_name("not") && lexemes_[at_ + 1].kind == Lexeme::Kind::name &&
               lexemes_[at_ + 1].text == "in") {
      take();
      take();
      op = "not in";
    } else {
      break;
    }
    node->operators.push_back(op);
    put(*node, parse_sum());
  }
  if (node->operators.empty()) return first;
  count_depth(*node, *first);
  node->parts.insert(node->parts.begin(), std::move(first));
  return node;
}

ExpressionPtr ExpressionParser::parse_sum() {
  ExpressionPtr node = parse_concatenation();
  while (at_op("+") || at_op("-")) {
    const std::string op = take().text;
    node = with(Kind::binary, op, std::move(node), parse_concatenation());
  }
  return node;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  ExpressionPtr node = parse_product();
  while (take_op("~")) node = with(Kind::binary, "~", std::move(node), parse_product());
  return node;
}

ExpressionPtr ExpressionParser::parse_product() {
  ExpressionPtr node = parse_power();
  while (at_op("*") || at_op("/") || at_op("//") || at_op("%")) {
    const std::string op = take().text;
    node = with(Kind::binary, op, std::move(node), parse_power());
  }
  return node;
}

ExpressionPtr ExpressionParser::parse_power() {
  ExpressionPtr node = parse_unary();
  while (take_op("**")) node = with(Kind::binary, "**", std::move(node), parse_unary());
  return node;
}

ExpressionPtr ExpressionParser::parse_unary(bool filters) {
  const Nesting nesting(*this);
  ExpressionPtr node;
  if (at_op("-") || at_op("+")) {
    const std::string op = take().text;
    node = with(Kind::unary, op, parse_unary(false));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  if (!filters) return node;
  for (;;) {
    if (at_op("|")) {
      node = parse_filters(std::move(node));
    } else if (take_name("is")) {
      node = parse_test(std::move(node));
    } else if (at_op("(")) {
      node = parse_postfix(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filters(ExpressionPtr to) {
  ExpressionPtr node = std::move(to);
  while (take_op("|")) node = parse_filter(std::move(node));
  return node;
}

ExpressionPtr ExpressionParser::parse_first_filter() {
  return parse_filters(parse_filter(nullptr));
}

ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr to) {
  ExpressionPtr filter = make(Kind::filter, expect_name());
  put(*filter, std::move(to));
  if (take_op("(")) parse_arguments(*filter);
  return filter;
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr node) {
  const bool negated = take_name("not");
  ExpressionPtr test = with(Kind::test, expect_name(), std::move(node));
  const bool names_operator = at_name("else") || at_name("or") || at_name("and") || at_name("if") ||
                              at_name("is") || at_name("in") || at_name("not");
  const Lexeme::Kind kind = now().kind;
  if (take_op("(")) {
    parse_arguments(*test);
  } else if ((kind == Lexeme::Kind::name && !names_operator) || kind == Lexeme::Kind::string ||
             kind == Lexeme::Kind::integer || kind == Lexeme::Kind::real || at_op("[") ||
             at_op("{")) {
    put(*test, parse_postfix(parse_primary()));
  }
  return negated ? with(Kind::unary, "not", std::move(test)) : std::move(test);
}

ExpressionPtr ExpressionParser::parse_primary() {
  ExpressionPtr node = make(Kind::constant);
  switch (now().kind) {
    case Lexeme::Kind::name: {
      const std::string name = take().text;
      if (name == "true" || name == "True") {
        node->constant = true;
      } else if (name == "false" || name == "False") {
        node->constant = false;
      } else if (name == "none" || name == "None") {
        node->constant = Value::none();
      } else {
        node->kind = Kind::name;
        node->text = name;
      }
      return node;
    }
    case Lexeme::Kind::string: {
      std::string text = take().text;
      while (now().kind == Lexeme::Kind::string) text += take().text;
      node->constant = std::move(text);
      return node;
    }
    case Lexeme::Kind::integer: {
      const std::string digits = take().text;
      errno = 0;
      const auto number = static_cast<int64_t>(std::strtoll(digits.c_str(), nullptr, 10));
      node->constant = errno == ERANGE ? Value::large_integer(digits) : Value(number);
      return node;
    }
    case Lexeme::Kind::real:
      node->constant = std::strtod(take().text.c_str(), nullptr);
      return node;
    default:
      break;
  }
  if (take_op("(")) {
    if (take_op(")")) return make(Kind::tuple);
    ExpressionPtr inner = parse_tuple();
    expect_op(")");
    return inner;
  }
  if (take_op("[")) {
    node->kind = Kind::list;
    while (!take_op("]")) {
      put(*node, parse_expression());
      if (!at_op("]")) expect_op(",");
    }
    return node;
  }
  if (at_op("{")) return parse_dict();
  fail("an expression is missing before '" + now().text + "'");
}

ExpressionPtr ExpressionParser::parse_dict() {
  ExpressionPtr node = make(Kind::dict);
  expect_op("{");
  while (!take_op("}")) {
    put(*node, parse_expression());
    expect_op(":");
    put(*node, parse_expression());
    if (!at_op("}")) expect_op(",");
  }
  return node;
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr node) {
  for (;;) {
    if (take_op(".")) {
      if (now().kind == Lexeme::Kind::integer) {
        ExpressionPtr key = parse_primary();
        node = with(Kind::index, "", std::move(node), std::move(key));
      } else {
        std::string name = expect_name();
        node = with(Kind::attribute, std::move(name), std::move(node));
      }
    } else if (take_op("[")) {
      node = parse_subscript(std::move(node));
    } else if (take_op("(")) {
      node = with(Kind::call, "", std::move(node));
      parse_arguments(*node);
    } else {
      return node;
    }
  }
}

// Behind `[`.
ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr node) {
  std::vector<ExpressionPtr> bounds;
  size_t colons = 0;
  bounds.push_back(at_op(":") ? nullptr : parse_tuple());
  while (take_op(":")) {
    ++colons;
    bounds.push_back(at_op(":") || at_op("]") ? nullptr : parse_expression());
  }
  expect_op("]");
  if (colons == 0) return with(Kind::index, "", std::move(node), std::move(bounds[0]));
  if (colons > 2) fail("a slice has more than three parts");
  ExpressionPtr slice = with(Kind::slice, "", std::move(node));
  bounds.resize(3);
  for (ExpressionPtr& bound : bounds) put(*slice, std::move(bound));
  return slice;
}

// Behind `(`.
void ExpressionParser::parse_arguments(Expression& call) {
  while (!take_op(")")) {
    const bool named = now().kind == Lexeme::Kind::name &&
                       lexemes_[at_ + 1].kind == Lexeme::Kind::op && lexemes_[at_ + 1].text == "=";
    if (named) {
      std::string name = take().text;
      take();
      ExpressionPtr value = parse_expression();
      count_depth(call, *value);
      call.named.emplace_back(std::move(name), std::move(value));
    } else {
      if (!call.named.empty()) fail("an argument without a name follows one with a name");
      put(call, parse_expression());
    }
    if (!at_op(")")) expect_op(",");
  }
}

Parameters ExpressionParser::parse_parameters() {
  Parameters parameters;
  expect_op("(");
  while (!take_op(")")) {
    parameters.names.push_back(expect_name());
    parameters.defaults.push_back(take_op("=") ? parse_expression() : nullptr);
    if (!at_op(")")) expect_op(",");
  }
  return parameters;
}

}  // namespace taper::llm::chat
