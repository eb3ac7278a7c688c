#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace taper::llm {

struct CodeRange {
  char32_t first, last;
};

/// Of one part, as in "a"?*+: each encloses the one before it, and readers follow them by
/// recursion.
inline constexpr int most_repetitions = 16;

/// A part of a grammar or of a regular expression.
struct Expression {
  enum class Kind : uint8_t {
    text,          ///< these bytes
    characters,    ///< one character out of the ranges
    rule,          ///< what the rule describes
    sequence,      ///< the parts, one behind the other; nothing if there are none
    alternatives,  ///< one of the parts; without parts, no text at all
    repeat,        ///< the only part, `least` to `most` times
    text_start,    ///< nothing, at the start of the text; only in regular expressions
    text_end,      ///< nothing, at the end of the text; only in regular expressions
  };
  static constexpr uint32_t unbounded = ~uint32_t{0};

  Kind kind = Kind::sequence;
  uint32_t rule = 0, least = 0, most = 0;
  std::string text;
  std::vector<CodeRange> ranges;
  std::vector<Expression> parts;

  static Expression of(Kind kind) {
    Expression e;
    e.kind = kind;
    return e;
  }
  static Expression of_text(std::string text) {
    Expression e = of(Kind::text);
    e.text = std::move(text);
    return e;
  }
  static Expression of_characters(std::vector<CodeRange> ranges) {
    Expression e = of(Kind::characters);
    e.ranges = std::move(ranges);
    return e;
  }
  static Expression of_parts(Kind kind, std::vector<Expression> parts) {
    Expression e = of(kind);
    e.parts = std::move(parts);
    return e;
  }
  static Expression of_repeat(Expression part, uint32_t least, uint32_t most) {
    Expression e = of(Kind::repeat);
    e.least = least;
    e.most = most;
    e.parts.push_back(std::move(part));
    return e;
  }
};

/// The characters that are in none of the ranges.
std::vector<CodeRange> all_but(std::vector<CodeRange> ranges);

}  // namespace taper::llm
