#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace taper::llm::chat {

/// A token of a template. Its text is what it stands for: the string without quotes.
struct Lexeme {
  enum class Kind : uint8_t {
    data,            ///< text between tags
    variable_begin,  ///< {{
    variable_end,
    block_begin,  ///< {%
    block_end,
    name,
    string,
    integer,
    real,
    op,   ///< an operator or a bracket
    end,  ///< of the template
  };
  Kind kind;
  std::string text;
  int line;
};

/// Cuts a template as Jinja does with trim_blocks and lstrip_blocks. Throws a Failure that names
/// the line.
std::vector<Lexeme> lex(std::string_view source);

}  // namespace taper::llm::chat
