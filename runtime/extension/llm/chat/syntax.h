#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "taper/runtime/extension/llm/chat/value.h"

namespace taper::llm::chat {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

/// A node of an expression. `text` is its name or operator; `parts` are its operands.
struct Expression {
  enum class Kind : uint8_t {
    constant,
    name,
    list,
    tuple,
    dict,       ///< parts: key, value, key, value, …
    attribute,  ///< parts[0].text
    index,      ///< parts[0][parts[1]]
    slice,      ///< parts[0][parts[1]:parts[2]:parts[3]]; absent ones are nullptr
    call,       ///< parts[0](the others, named)
    filter,     ///< parts[0] | text(the others, named); parts[0] is nullptr in a filter block
    test,       ///< parts[0] is text(the others, named)
    unary,
    binary,
    comparison,  ///< parts[0] operators[0] parts[1] operators[1] parts[2] …
    logical_and,
    logical_or,
    conditional,  ///< parts[1] ? parts[0] : parts[2], which may be nullptr
  };
  Kind kind;
  int line;
  std::string text;
  int depth = 0;  ///< of the parts below, in chains such as a + b + c
  Value constant;
  std::vector<ExpressionPtr> parts;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<std::string> operators;
};

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

/// The head of a macro: names, and defaults (nullptr: none).
struct Parameters {
  std::vector<std::string> names;
  std::vector<ExpressionPtr> defaults;
};

struct Statement {
  enum class Kind : uint8_t {
    text,
    output,
    if_else,
    for_each,       ///< targets in expression, if condition
    set,            ///< targets = expression, or the block
    set_attribute,  ///< targets[0].targets[1] = expression
    macro,
    call_block,  ///< expression, with the block as caller()
    filter_block,
    with,
    scope,  ///< a block that renders its body
    leave,  ///< {% break %}
    next,   ///< {% continue %}
  };
  Kind kind;
  int line;
  std::string text;  ///< or the macro's name
  std::vector<std::string> targets;
  ExpressionPtr expression, condition;
  std::vector<ExpressionPtr> values;  ///< of `with`
  Parameters parameters;
  Block body, otherwise;
};

/// Parses a template. Throws a Failure that names the line.
Block parse(std::string_view source);

}  // namespace taper::llm::chat
