// The statements of a template: blocks, and what stands between them.
#include <algorithm>

#include "taper/runtime/extension/llm/chat/parser.h"
#include "taper/runtime/extension/llm/failure.h"

namespace taper::llm::chat {
namespace {

using Kind = Statement::Kind;
using Names = std::vector<std::string>;

class TemplateParser {
 public:
  explicit TemplateParser(std::string_view source) : in_(lex(source)) {}

  Block parse() {
    Block block = parse_block("", {});
    if (in_.now().kind != Lexeme::Kind::end) in_.fail("'" + in_.now().text + "' closes no block");
    return block;
  }

 private:
  std::unique_ptr<Statement> make(Kind kind) const {
    auto statement = std::make_unique<Statement>();
    statement->kind = kind;
    statement->line = in_.now().line;
    return statement;
  }

  // Up to a tag with one of the names, which is left at its name.
  Block parse_block(const std::string& opened, const Names& ends) {
    constexpr int most = 100;
    if (++depth_ > most) in_.fail("blocks are nested deeper than " + std::to_string(most));
    Block block;
    for (;;) {
      if (in_.now().kind == Lexeme::Kind::end) {
        if (!ends.empty()) in_.fail("the block '" + opened + "' does not end");
        break;
      }
      if (in_.now().kind == Lexeme::Kind::data) {
        block.push_back(make(Kind::text));
        block.back()->text = in_.take().text;
      } else if (in_.now().kind == Lexeme::Kind::variable_begin) {
        in_.take();
        block.push_back(make(Kind::output));
        block.back()->expression = in_.parse_tuple();
        in_.expect(Lexeme::Kind::variable_end, "'}}'");
      } else {
        in_.expect(Lexeme::Kind::block_begin, "a tag");
        if (std::find(ends.begin(), ends.end(), in_.now().text) != ends.end()) break;
        block.push_back(parse_statement());
      }
    }
    --depth_;
    return block;
  }

  void end_tag() { in_.expect(Lexeme::Kind::block_end, "'%}'"); }

  // The body up to `end`, whose tag is taken too.
  Block parse_body(const std::string& opened, const std::string& end) {
    end_tag();
    Block body = parse_block(opened, {end});
    in_.take();
    end_tag();
    return body;
  }

  std::unique_ptr<Statement> parse_statement() {
    const std::string name = in_.expect_name();
    if (name == "if") return parse_if();
    if (name == "for") return parse_for();
    if (name == "set") return parse_set();
    if (name == "macro") return parse_macro();
    if (name == "call") return parse_call();
    if (name == "filter") return parse_filter();
    if (name == "with") return parse_with();
    if (name == "generation") {
      auto statement = make(Kind::scope);
      statement->body = parse_body(name, "endgeneration");
      return statement;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) in_.fail("'" + name + "' stands outside of a loop");
      auto statement = make(name == "break" ? Kind::leave : Kind::next);
      end_tag();
      return statement;
    }
    in_.fail("there is no tag '" + name + "'");
  }

  // Behind `if` or `elif`.
  std::unique_ptr<Statement> parse_if() {
    auto statement = make(Kind::if_else);
    statement->condition = in_.parse_tuple();
    end_tag();
    statement->body = parse_block("if", {"elif", "else", "endif"});
    const std::string end = in_.take().text;
    if (end == "elif") {
      constexpr int most = 100;
      if (++depth_ > most) in_.fail("there are more than " + std::to_string(most) + " branches");
      statement->otherwise.push_back(parse_if());
      --depth_;
      return statement;
    }
    end_tag();
    if (end == "else") {
      statement->otherwise = parse_block("if", {"endif"});
      in_.take();
      end_tag();
    }
    return statement;
  }

  Names parse_targets() {
    Names targets;
    const bool brackets = in_.take_op("(");
    do {
      targets.push_back(in_.expect_name());
    } while (in_.take_op(","));
    if (brackets) in_.expect_op(")");
    return targets;
  }

  std::unique_ptr<Statement> parse_for() {
    auto statement = make(Kind::for_each);
    statement->targets = parse_targets();
    if (!in_.take_name("in")) in_.fail("'in' is missing before '" + in_.now().text + "'");
    statement->expression = in_.parse_tuple(/*conditional=*/false);
    if (in_.take_name("if")) statement->condition = in_.parse_expression();
    end_tag();
    ++loops_;
    statement->body = parse_block("for", {"else", "endfor"});
    --loops_;
    if (in_.take().text == "else") {
      end_tag();
      statement->otherwise = parse_block("for", {"endfor"});
      in_.take();
    }
    end_tag();
    return statement;
  }

  std::unique_ptr<Statement> parse_set() {
    auto statement = make(Kind::set);
    statement->targets = parse_targets();
    if (in_.take_op(".")) {
      statement->kind = Kind::set_attribute;
      statement->targets.push_back(in_.expect_name());
    }
    if (in_.take_op("=")) {
      statement->expression = in_.parse_tuple();
      end_tag();
      return statement;
    }
    if (statement->kind != Kind::set || statement->targets.size() != 1) {
      in_.fail("'=' is missing before '" + in_.now().text + "'");
    }
    statement->condition = in_.parse_filters(nullptr);
    statement->body = parse_body("set", "endset");
    return statement;
  }

  std::unique_ptr<Statement> parse_macro() {
    auto statement = make(Kind::macro);
    statement->text = in_.expect_name();
    statement->parameters = in_.parse_parameters();
    const int loops = std::exchange(loops_, 0);
    statement->body = parse_body("macro", "endmacro");
    loops_ = loops;
    return statement;
  }

  std::unique_ptr<Statement> parse_call() {
    auto statement = make(Kind::call_block);
    if (in_.at_op("(")) statement->parameters = in_.parse_parameters();
    statement->expression = in_.parse_expression();
    if (statement->expression->kind != Expression::Kind::call) in_.fail("'call' needs a call");
    const int loops = std::exchange(loops_, 0);
    statement->body = parse_body("call", "endcall");
    loops_ = loops;
    return statement;
  }

  std::unique_ptr<Statement> parse_filter() {
    auto statement = make(Kind::filter_block);
    statement->condition = in_.parse_first_filter();
    statement->body = parse_body("filter", "endfilter");
    return statement;
  }

  std::unique_ptr<Statement> parse_with() {
    auto statement = make(Kind::with);
    while (in_.now().kind != Lexeme::Kind::block_end) {
      if (!statement->targets.empty()) in_.expect_op(",");
      statement->targets.push_back(in_.expect_name());
      in_.expect_op("=");
      statement->values.push_back(in_.parse_expression());
    }
    statement->body = parse_body("with", "endwith");
    return statement;
  }

  ExpressionParser in_;
  int depth_ = 0, loops_ = 0;
};

}  // namespace

Block parse(std::string_view source) { return TemplateParser(source).parse(); }

}  // namespace taper::llm::chat
