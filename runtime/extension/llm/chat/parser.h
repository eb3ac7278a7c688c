#pragma once
#include "taper/runtime/extension/llm/chat/lexer.h"
#include "taper/runtime/extension/llm/chat/syntax.h"

namespace taper::llm::chat {

/// Reads expressions from lexemes. `parse_template` builds on it.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Lexeme> lexemes) : lexemes_(std::move(lexemes)) {}

  /// Several, with commas between them, become a tuple. Without `conditional`, an `if` ends it.
  ExpressionPtr parse_tuple(bool conditional = true);
  ExpressionPtr parse_expression(bool conditional = true);
  ExpressionPtr parse_unary(bool filters = true);
  /// ( a, b = c )
  Parameters parse_parameters();
  /// | name(…) | …, applied to `to`.
  ExpressionPtr parse_filters(ExpressionPtr to);
  /// The same without the first `|`, applied to nothing.
  ExpressionPtr parse_first_filter();

  const Lexeme& now() const { return lexemes_[at_]; }
  bool at(Lexeme::Kind kind, std::string_view text) const {
    return now().kind == kind && now().text == text;
  }
  bool at_op(std::string_view op) const { return at(Lexeme::Kind::op, op); }
  bool at_name(std::string_view name) const { return at(Lexeme::Kind::name, name); }
  Lexeme take() { return now().kind == Lexeme::Kind::end ? now() : lexemes_[at_++]; }
  bool take_op(std::string_view op);
  bool take_name(std::string_view name);
  void expect_op(std::string_view op);
  std::string expect_name();
  void expect(Lexeme::Kind kind, const char* what);
  [[noreturn]] void fail(const std::string& why) const;

 private:
  class Nesting;
  ExpressionPtr parse_filter(ExpressionPtr to);
  ExpressionPtr make(Expression::Kind kind, std::string text = "") const;
  ExpressionPtr with(Expression::Kind kind, std::string text, ExpressionPtr a,
                     ExpressionPtr b = nullptr) const;
  void put(Expression& node, ExpressionPtr part) const;
  void count_depth(Expression& node, const Expression& part) const;
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_primary();
  ExpressionPtr parse_postfix(ExpressionPtr node);
  ExpressionPtr parse_subscript(ExpressionPtr node);
  ExpressionPtr parse_dict();
  ExpressionPtr parse_test(ExpressionPtr node);
  void parse_arguments(Expression& call);
  bool at_end_of_tuple() const;

  std::vector<Lexeme> lexemes_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace taper::llm::chat
