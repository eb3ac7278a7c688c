#include "taper/runtime/extension/llm/grammar/pattern.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm {
namespace {

constexpr char32_t last_character = 0x10FFFF;
constexpr int most_groups = 200;  // one inside of the other
using Ranges = std::vector<CodeRange>;

const Ranges& class_ranges(char name) {
  static const Ranges digits = {{'0', '9'}};
  static const Ranges words = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  static const Ranges blanks = {
      {9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
      {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  return name == 'd' ? digits : name == 'w' ? words : blanks;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expression read() {
    if (!is_valid_utf8(text_)) wrong("it is not UTF-8");
    Expression all = read_alternatives(0);
    if (at_ < text_.size()) wrong("there is a ')' without '('");
    return all;
  }

 private:
  [[noreturn]] void wrong(const std::string& why) const {
    refuse("the pattern \"" + std::string(text_) + "\": " + why);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }
  char32_t take_character() {
    const char32_t c = character_at(text_, at_);
    at_ += character_length(text_[at_]);
    return c;
  }

  Expression read_alternatives(int groups) {
    if (groups > most_groups) wrong("too many groups are one inside of the other");
    Expression all = Expression::of(Expression::Kind::alternatives);
    do {
      Expression sequence = Expression::of(Expression::Kind::sequence);
      while (at_ < text_.size() && peek() != '|' && peek() != ')') {
        sequence.parts.push_back(read_repeated(groups));
      }
      all.parts.push_back(std::move(sequence));
    } while (take("|"));
    return all;
  }

  Expression read_repeated(int groups) {
    const bool is_anchor = peek() == '^' || peek() == '$';
    Expression item = read_item(groups);
    int repeated = 0;
    while (const auto times = read_times()) {
      if (++repeated > most_repetitions) wrong("a part is repeated too many times over");
      if (is_anchor) wrong("'^' and '$' cannot be repeated");
      static_cast<void>(take("?"));  // lazy, which finds the same texts
      item = Expression::of_repeat(std::move(item), times->first, times->second);
    }
    return item;
  }

  std::optional<std::pair<uint32_t, uint32_t>> read_times() {
    if (take("*")) return std::pair(uint32_t{0}, Expression::unbounded);
    if (take("+")) return std::pair(uint32_t{1}, Expression::unbounded);
    if (take("?")) return std::pair(uint32_t{0}, uint32_t{1});
    if (!take("{")) return std::nullopt;
    const uint32_t least = take_count();
    uint32_t most = least;
    if (take(",")) most = peek() == '}' ? Expression::unbounded : take_count();
    if (!take("}")) wrong("'}' is missing");
    if (most < least) wrong("a repetition ends before it begins");
    return std::pair(least, most);
  }
  uint32_t take_count() {
    uint32_t count = 0;
    const size_t first = at_;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      count = count * 10 + static_cast<uint32_t>(peek() - '0');
      if (count > 1'000'000) wrong("a repetition of more than 1000000 times");
    }
    if (at_ == first) wrong("a number is missing behind '{'");
    return count;
  }

  Expression read_item(int groups) {
    if (take("^")) return Expression::of(Expression::Kind::text_start);
    if (take("$")) return Expression::of(Expression::Kind::text_end);
    if (take(".")) {
      return Expression::of_characters(all_but({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
    }
    if (take("[")) return read_class();
    if (take("(")) return read_group(groups);
    if (take("\\")) return Expression::of_characters(read_escape(false));
    if (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{') {
      wrong("there is nothing to repeat");
    }
    const char32_t c = take_character();
    return Expression::of_characters({{c, c}});
  }

  Expression read_group(int groups) {
    if (!take("?:") && take("?")) {
      if (!take("<") || peek() == '=' || peek() == '!') {
        wrong("groups that look around are not supported");
      }
      at_ = text_.find('>', at_);
      if (at_ == std::string_view::npos) wrong("the name of a group does not end");
      ++at_;
    }
    Expression group = read_alternatives(groups + 1);
    if (!take(")")) wrong("')' is missing");
    return group;
  }

  Ranges read_escape(bool in_class) {
    if (at_ >= text_.size()) wrong("a backslash stands at its end");
    const char32_t c = take_character();
    switch (c) {
      case 'd':
      case 'w':
      case 's':
        return class_ranges(static_cast<char>(c));
      case 'D':
      case 'W':
      case 'S':
        return all_but(class_ranges(static_cast<char>(c - 'A' + 'a')));
      case 'n':
        return {{'\n', '\n'}};
      case 'r':
        return {{'\r', '\r'}};
      case 't':
        return {{'\t', '\t'}};
      case 'f':
        return {{'\f', '\f'}};
      case 'v':
        return {{'\v', '\v'}};
      case '0':
        return {{0, 0}};
      case 'x':
        return one(take_hex(2));
      case 'u':
        return one(take_unicode());
      case 'b':
        if (in_class) return {{'\b', '\b'}};
        break;
      default:
        if (!is_word(c) || c == '_') return one(c);
    }
    std::string name;
    append_character(name, c);
    wrong("'\\" + name + "' is not supported");
  }
  static Ranges one(char32_t c) { return {{c, c}}; }

  char32_t take_hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) wrong("an escape needs hexadecimal digits");
      value = value * 16 + static_cast<char32_t>(digit);
    }
    return value;
  }
  char32_t take_unicode() {
    if (!take("{")) {
      const char32_t high = take_hex(4);
      if (high < 0xD800 || high > 0xDBFF || !take("\\u")) return high;
      const char32_t low = take_hex(4);
      if (low < 0xDC00 || low > 0xDFFF) wrong("half of a surrogate pair is missing");
      return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    }
    char32_t value = 0;
    while (!take("}")) {
      value = value * 16 + take_hex(1);
      if (value > last_character) wrong("an escape names no character of Unicode");
    }
    return value;
  }

  Expression read_class() {
    const bool is_negated = take("^");
    Ranges ranges;
    while (!take("]")) {
      if (at_ >= text_.size()) wrong("']' is missing");
      const Ranges first = read_class_member();
      ranges.insert(ranges.end(), first.begin(), first.end());
      if (peek() != '-' || text_.substr(at_, 2) == "-]" || first.size() != 1 ||
          first[0].first != first[0].last) {
        continue;
      }
      ++at_;
      if (at_ >= text_.size()) wrong("']' is missing");
      const Ranges last = read_class_member();
      if (last.size() != 1 || last[0].first != last[0].last || last[0].first < first[0].first) {
        wrong("a range of characters ends before it begins");
      }
      ranges.back().last = last[0].first;
    }
    return Expression::of_characters(is_negated ? all_but(std::move(ranges)) : std::move(ranges));
  }
  Ranges read_class_member() { return take("\\") ? read_escape(true) : one(take_character()); }

  std::string_view text_;
  size_t at_ = 0;
};

// Copies a graph, once for each answer to two questions: does the text start here, and has it
// ended? So '^' and '$' become nodes that do nothing, or that cannot be passed.
class Anchored {
 public:
  explicit Anchored(Rules& rules) : rules_(rules), pattern_(rules.nodes) {
    impassable_ = static_cast<uint32_t>(rules_.sets.size());
    rules_.sets.emplace_back();
    const auto count = static_cast<uint32_t>(pattern_.size());
    for (int copy = 0; copy < 4; ++copy) {
      for (uint32_t i = 0; i < count; ++i) add_copy(i, copy);
    }
  }

  static constexpr int at_start = 1, at_end = 2;
  uint32_t node(uint32_t of, int copy) const {
    const auto count = static_cast<uint32_t>(pattern_.size());
    return count * static_cast<uint32_t>(copy + 1) + of;
  }

 private:
  void add_copy(uint32_t i, int copy) {
    Rules::Node node_copy = pattern_[i];
    const Rules::Node original = pattern_[i];
    switch (original.kind) {
      case Rules::Kind::bytes:
        node_copy.next = node(original.next, 0);
        if ((copy & at_end) != 0) node_copy.value = impassable_;
        break;
      case Rules::Kind::text_start:
        node_copy = (copy & at_start) != 0 ? passed(node(original.next, copy)) : wall();
        break;
      case Rules::Kind::text_end:
        node_copy = passed(node(original.next, copy | at_end));
        break;
      case Rules::Kind::split:
        node_copy.value = node(original.value, copy);
        node_copy.next = node(original.next, copy);
        break;
      default:  // the end, which the caller sets
        node_copy = wall();
    }
    rules_.nodes.push_back(node_copy);
  }
  static Rules::Node passed(uint32_t next) { return {Rules::Kind::split, next, next}; }
  Rules::Node wall() const { return {Rules::Kind::bytes, impassable_, Rules::end}; }

  Rules& rules_;
  std::vector<Rules::Node> pattern_;
  uint32_t impassable_;
};

}  // namespace

// A search reads any characters, the pattern, and any characters behind it.
Rules rules_of_pattern(const std::string& pattern) {
  const Expression expression = Parser(pattern).read();
  Rules rules;
  RuleBuilder builder(rules);
  const uint32_t start = builder.build(expression, Rules::end);
  const Anchored anchored(rules);
  const Expression any_text = Expression::of_repeat(
      Expression::of_characters({{0, last_character}}), 0, Expression::unbounded);
  const uint32_t rest = builder.build(any_text, Rules::end);
  for (int copy = 0; copy < 4; ++copy) {
    const uint32_t behind = (copy & Anchored::at_end) != 0 ? Rules::end : rest;
    rules.nodes[anchored.node(Rules::end, copy)] = {Rules::Kind::split, behind, behind};
  }
  const uint32_t later = builder.build(any_text, anchored.node(start, 0));
  const uint32_t first =
      builder.add(Rules::Kind::split, anchored.node(start, Anchored::at_start), later);
  rules.rules.push_back({"root", 1, first});
  try {
    check_rules(rules);
  } catch (const Failure&) {
    refuse("the pattern \"" + pattern + "\" finds nothing in any text");
  }
  return rules;
}

const char* grammar_of_format(const std::string& format) {
  if (format == "date") {
    return R"gbnf(
      root ::= year "-" ("0" [13578] | "1" [02]) "-" day31 | year "-" ("0" [469] | "11") "-" day30 |
               year "-02-" day28 | leap "-02-29"
      year ::= "000" [1-9] | "00" [1-9] [0-9] | "0" [1-9] [0-9]{2} | [1-9] [0-9]{3}
      leap ::= [0-9]{2} four | ([02468] [48] | [13579] [26] | [2468] "0") "00"
      four ::= "0" [48] | [2468] [048] | [13579] [26]
      day28 ::= "0" [1-9] | "1" [0-9] | "2" [0-8]
      day30 ::= "0" [1-9] | [12] [0-9] | "30"
      day31 ::= day30 | "31"
    )gbnf";
  }
  if (format == "ipv4") {
    return R"gbnf(
      root ::= part ("." part){3}
      part ::= [0-9] | [1-9] [0-9] | "1" [0-9]{2} | "2" [0-4] [0-9] | "25" [0-5]
    )gbnf";
  }
  if (format == "uuid") {
    return R"gbnf(
      root ::= hex{8} "-" hex{4} "-" hex{4} "-" hex{4} "-" hex{12}
      hex ::= [0-9a-fA-F]
    )gbnf";
  }
  return nullptr;
}

}  // namespace taper::llm
