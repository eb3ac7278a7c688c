#include "taper/runtime/extension/llm/grammar/gbnf.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm {
namespace {

constexpr size_t most_bytes = size_t{1} << 22;
constexpr int most_groups = 200;  // one inside of the other
constexpr char32_t last_character = 0x10FFFF;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_';
}
int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Rules read() {
    if (text_.size() > most_bytes) {
      refuse("the grammar has " + std::to_string(text_.size()) + " bytes; " +
             std::to_string(most_bytes) + " are the most");
    }
    try {
      check_characters();
      skip_blanks(true);
      while (at_ < text_.size()) read_rule();
      finish();
    } catch (Failure& failure) {
      if (failure.why.compare(0, 5, "line ") != 0) {
        failure.why = "line " + std::to_string(line_) + ": " + failure.why;
      }
      throw;
    }
    check_rules(rules_);
    return std::move(rules_);
  }

 private:
  void check_characters() {
    for (size_t at = 0; at < text_.size();) {
      const int length = first_character(text_.substr(at, 4));
      if (length <= 0) refuse("the bytes are not UTF-8");
      if (text_[at] == '\n') ++line_;
      at += static_cast<size_t>(length);
    }
    line_ = 1;
  }

  void finish() {
    for (const auto& [name, rule] : names_) {
      if (!is_defined_[rule]) {
        line_ = rules_.rules[rule].line;
        refuse("there is no rule '" + name + "'");
      }
    }
    const auto root = names_.find("root");
    if (root == names_.end()) refuse("there is no rule 'root', where texts begin");
    rules_.root = root->second;
  }

  // ---- characters

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }
  void skip_blanks(bool lines_too) {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        if (at_ == text_.size()) return;
      }
      if (peek() == '\n' || peek() == '\r') {
        if (!lines_too) return;
        line_ += peek() == '\n';
      } else if (peek() != ' ' && peek() != '\t') {
        return;
      }
    }
  }
  // What stands here, for messages.
  std::string here() const {
    if (at_ >= text_.size()) return "the text ends";
    if (peek() == '\n' || peek() == '\r') return "the line ends";
    return "there is '" + std::string(text_.substr(at_, character_length(peek()))) + "'";
  }
  char32_t take_character() {
    const char32_t c = character_at(text_, at_);
    line_ += c == '\n';
    at_ += character_length(text_[at_]);
    return c;
  }
  char32_t take_hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const int digit = hex_digit(peek());
      if (digit < 0) refuse("an escape needs " + std::to_string(digits) + " hexadecimal digits");
      value = value * 16 + static_cast<char32_t>(digit);
      ++at_;
    }
    if (value > last_character || (value >= 0xD800 && value <= 0xDFFF)) {
      refuse("an escape names no character of Unicode");
    }
    return value;
  }
  // A character of a literal or a class.
  char32_t take_escaped() {
    if (!take("\\")) return take_character();
    const char c = peek();
    ++at_;
    switch (c) {
      case 'x':
        return take_hex(2);
      case 'u':
        return take_hex(4);
      case 'U':
        return take_hex(8);
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return static_cast<char32_t>(c);
      default:
        --at_;
        refuse("behind a backslash " + here());
    }
  }

  // ---- rules

  std::string take_name() {
    const size_t first = at_;
    while (is_of_name(peek())) ++at_;
    if (at_ == first) refuse("a rule's name should be here, but " + here());
    return std::string(text_.substr(first, at_ - first));
  }
  uint32_t rule_of(const std::string& name) {
    const auto number = static_cast<uint32_t>(rules_.rules.size());
    const auto [place, is_new] = names_.try_emplace(name, number);
    if (is_new) {
      rules_.rules.push_back({name, line_});
      is_defined_.push_back(false);
    }
    return place->second;
  }

  void read_rule() {
    const uint32_t rule = rule_of(take_name());
    if (is_defined_[rule]) refuse("the rule '" + rules_.rules[rule].name + "' is there twice");
    is_defined_[rule] = true;
    rules_.rules[rule].line = line_;
    skip_blanks(false);
    if (!take("::=")) refuse("'::=' should be here, but " + here());
    skip_blanks(true);
    const uint32_t start = builder_.build(read_alternatives(0), Rules::end);
    rules_.rules[rule].start = start;
    if (at_ < text_.size() && peek() != '\n' && peek() != '\r') {
      refuse("the rule should end here, but " + here());
    }
    skip_blanks(true);
  }

  Expression read_alternatives(int groups) {
    if (groups > most_groups) {
      refuse("more than " + std::to_string(most_groups) + " groups are one inside of the other");
    }
    Expression all = Expression::of(Expression::Kind::alternatives);
    do {
      skip_blanks(true);
      all.parts.push_back(read_sequence(groups));
    } while (take("|"));
    if (all.parts.size() > 1) return all;
    Expression only = std::move(all.parts.front());
    return only;
  }

  Expression read_sequence(int groups) {
    Expression sequence = Expression::of(Expression::Kind::sequence);
    while (std::optional<Expression> item = read_item(groups)) {
      skip_blanks(groups > 0);
      int repeated = 0;
      while (const std::optional<std::pair<uint32_t, uint32_t>> times = read_times()) {
        if (++repeated > most_repetitions) refuse("a part is repeated too many times over");
        item = Expression::of_repeat(std::move(*item), times->first, times->second);
        skip_blanks(groups > 0);
      }
      sequence.parts.push_back(std::move(*item));
    }
    return sequence;
  }

  std::optional<Expression> read_item(int groups) {
    if (take("\"")) return read_literal();
    if (take("[")) return read_class();
    if (take(".")) return Expression::of_characters({{0, last_character}});
    if (take("(")) {
      Expression group = read_alternatives(groups + 1);
      if (!take(")")) refuse("')' should be here, but " + here());
      return group;
    }
    if (!is_of_name(peek())) return std::nullopt;
    Expression rule = Expression::of(Expression::Kind::rule);
    rule.rule = rule_of(take_name());
    return rule;
  }

  Expression read_literal() {
    std::string bytes;
    while (!take("\"")) {
      if (at_ >= text_.size() || peek() == '\n') refuse("a literal does not end: '\"' is missing");
      append_character(bytes, take_escaped());
    }
    return Expression::of_text(std::move(bytes));
  }

  Expression read_class() {
    const bool is_negated = take("^");
    std::vector<CodeRange> ranges;
    while (!take("]")) {
      if (at_ >= text_.size()) refuse("a class does not end: ']' is missing");
      const char32_t first = take_escaped();
      char32_t last = first;
      if (peek() == '-' && text_.substr(at_, 2) != "-]") {
        ++at_;
        if (at_ >= text_.size()) refuse("a class does not end: ']' is missing");
        last = take_escaped();
      }
      if (last < first) refuse("a range of characters ends before it begins");
      ranges.push_back({first, last});
    }
    return Expression::of_characters(is_negated ? all_but(std::move(ranges)) : std::move(ranges));
  }

  // How often an item stands there, if that is said behind it.
  std::optional<std::pair<uint32_t, uint32_t>> read_times() {
    if (take("*")) return std::pair(uint32_t{0}, Expression::unbounded);
    if (take("+")) return std::pair(uint32_t{1}, Expression::unbounded);
    if (take("?")) return std::pair(uint32_t{0}, uint32_t{1});
    if (!take("{")) return std::nullopt;
    skip_blanks(true);
    const uint32_t least = take_count();
    skip_blanks(true);
    uint32_t most = least;
    if (take(",")) {
      skip_blanks(true);
      most = is_digit(peek()) ? take_count() : Expression::unbounded;
      skip_blanks(true);
    }
    if (!take("}")) refuse("'}' should be here, but " + here());
    if (most < least) refuse("a repetition ends before it begins");
    return std::pair(least, most);
  }
  uint32_t take_count() {
    if (!is_digit(peek())) refuse("a number should be here, but " + here());
    uint32_t count = 0;
    for (; is_digit(peek()); ++at_) {
      count = count * 10 + static_cast<uint32_t>(peek() - '0');
      if (count > 1'000'000) refuse("a repetition of more than 1000000 times");
    }
    return count;
  }

  std::string_view text_;
  size_t at_ = 0, line_ = 1;
  Rules rules_;
  RuleBuilder builder_{rules_};
  std::unordered_map<std::string, uint32_t> names_;
  std::vector<bool> is_defined_;
};

}  // namespace

Rules read_gbnf(std::string_view text) { return Parser(text).read(); }

}  // namespace taper::llm
