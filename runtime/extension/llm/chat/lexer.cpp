#include "taper/runtime/extension/llm/chat/lexer.h"

#include <algorithm>
#include <cctype>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm::chat {
namespace {

using Kind = Lexeme::Kind;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || static_cast<uint8_t>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// One kind of line end, and none at the end of the template.
std::string normalized(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(normalized(source)) {}

  std::vector<Lexeme> run() {
    while (at_ < text_.size()) {
      const size_t tag = next_tag();
      const size_t begin = at_;
      at_ = tag;
      if (tag == text_.size()) {
        add_data(begin, tag, ' ', false);
      } else {
        read_tag(begin);
      }
    }
    add(Kind::end, "");
    return std::move(lexemes_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    refuse("line " + std::to_string(line_) + ": " + why);
  }

  size_t next_tag() const {
    for (size_t i = at_; i + 1 < text_.size(); ++i) {
      if (text_[i] == '{' && (text_[i + 1] == '{' || text_[i + 1] == '%' || text_[i + 1] == '#')) {
        return i;
      }
    }
    return text_.size();
  }

  void add(Kind kind, std::string text) { lexemes_.push_back({kind, std::move(text), line_}); }

  // Text before a tag. `sign` stands behind the tag's opening: `-` strips all white space, and `+`
  // keeps the blanks that stand alone before a block.
  void add_data(size_t begin, size_t end, char sign, bool before_block) {
    std::string_view data(text_.data() + begin, end - begin);
    const auto lines = static_cast<int>(std::count(data.begin(), data.end(), '\n'));
    const bool line_starts = begin == 0 || text_[begin - 1] == '\n';
    if (sign == '-') {
      while (!data.empty() && is_space(data.back())) data.remove_suffix(1);
    } else if (before_block && sign != '+') {
      const size_t line_begin = data.rfind('\n') + 1;  // 0: the data have no line end
      const bool blank =
          std::all_of(data.begin() + static_cast<ptrdiff_t>(line_begin), data.end(), is_space);
      if (blank && (line_begin > 0 || line_starts)) data = data.substr(0, line_begin);
    }
    if (!data.empty()) add(Kind::data, std::string(data));
    line_ += lines;
  }

  void read_tag(size_t data_begin) {
    const size_t tag = at_;
    const char opening = text_[tag + 1];
    at_ = tag + 2;
    char sign = ' ';
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) sign = text_[at_++];
    add_data(data_begin, tag, sign, opening != '{');
    if (opening == '#') return skip_comment();
    if (opening == '%' && read_raw()) return;
    read_inside(opening == '{');
  }

  void advance_to(size_t place) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                                         text_.begin() + static_cast<ptrdiff_t>(place), '\n'));
    at_ = place;
  }

  void skip_spaces() {
    size_t place = at_;
    while (place < text_.size() && is_space(text_[place])) ++place;
    advance_to(place);
  }

  // Behind a tag's end: `sign` stood before it.
  void after_block(char sign) {
    if (sign == '-') {
      skip_spaces();
    } else if (sign != '+' && at_ < text_.size() && text_[at_] == '\n') {
      advance_to(at_ + 1);
    }
  }

  void skip_comment() {
    const size_t end = text_.find("#}", at_);
    if (end == std::string::npos) fail("a comment does not end");
    const char sign = end > at_ ? text_[end - 1] : ' ';
    advance_to(end + 2);
    after_block(sign == '-' || sign == '+' ? sign : ' ');
  }

  // At `name %}`, perhaps with blanks and a sign: the place behind it and the sign, or npos.
  size_t match_simple_tag(size_t place, std::string_view name, char& sign) const {
    while (place < text_.size() && is_space(text_[place])) ++place;
    if (text_.compare(place, name.size(), name) != 0) return std::string::npos;
    place += name.size();
    while (place < text_.size() && is_space(text_[place])) ++place;
    sign = ' ';
    if (place < text_.size() && (text_[place] == '-' || text_[place] == '+')) sign = text_[place++];
    return text_.compare(place, 2, "%}") == 0 ? place + 2 : std::string::npos;
  }

  bool read_raw() {
    char sign = ' ';
    const size_t begin = match_simple_tag(at_, "raw", sign);
    if (begin == std::string::npos) return false;
    advance_to(begin);
    if (sign == '-') skip_spaces();
    for (size_t end = at_; (end = text_.find("{%", end)) != std::string::npos; end += 2) {
      char before = ' ';
      size_t name = end + 2;
      if (name < text_.size() && (text_[name] == '-' || text_[name] == '+')) before = text_[name++];
      const size_t behind = match_simple_tag(name, "endraw", sign);
      if (behind == std::string::npos) continue;
      add_data(at_, end, before, true);
      at_ = end;
      advance_to(behind);
      after_block(sign);
      return true;
    }
    fail("a raw block does not end");
  }

  // Lexemes up to the end of a tag.
  void read_inside(bool variable) {
    add(variable ? Kind::variable_begin : Kind::block_begin, "");
    const std::string_view closing = variable ? "}}" : "%}";
    int depth = 0;
    for (;;) {
      skip_spaces();
      if (at_ >= text_.size()) fail("a tag does not end");
      const char c = text_[at_];
      if (depth == 0) {
        const bool has_sign = c == '-' || (c == '+' && !variable);
        if (text_.compare(at_ + (has_sign ? 1 : 0), 2, closing) == 0) {
          add(variable ? Kind::variable_end : Kind::block_end, "");
          at_ += has_sign ? 3 : 2;
          if (!variable) return after_block(has_sign ? c : ' ');
          if (c == '-') skip_spaces();
          return;
        }
      }
      if (c == '\'' || c == '"') {
        read_string(c);
      } else if (is_digit(c)) {
        read_number();
      } else if (starts_name(c)) {
        const size_t begin = at_;
        while (at_ < text_.size() && (starts_name(text_[at_]) || is_digit(text_[at_]))) ++at_;
        add(Kind::name, text_.substr(begin, at_ - begin));
      } else {
        read_operator(depth);
      }
    }
  }

  void read_operator(int& depth) {
    for (const char* two : {"**", "//", "==", "!=", ">=", "<="}) {
      if (text_.compare(at_, 2, two) == 0) {
        add(Kind::op, two);
        at_ += 2;
        return;
      }
    }
    const char c = text_[at_++];
    if (std::string_view("+-/*%~[](){}<>=.:|,").find(c) == std::string_view::npos) {
      fail(std::string("the character '") + c + "' has no meaning here");
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth < 0) fail(std::string("'") + c + "' closes nothing");
    add(Kind::op, std::string(1, c));
  }

  void read_number() {
    const size_t begin = at_;
    bool real = false;
    const auto digits = [&] {
      while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '_')) ++at_;
    };
    digits();
    if (at_ + 1 < text_.size() && text_[at_] == '.' && is_digit(text_[at_ + 1])) {
      real = true;
      ++at_;
      digits();
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      size_t exponent = at_ + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && is_digit(text_[exponent])) {
        real = true;
        at_ = exponent;
        digits();
      }
    }
    std::string number = text_.substr(begin, at_ - begin);
    number.erase(std::remove(number.begin(), number.end(), '_'), number.end());
    add(real ? Kind::real : Kind::integer, number);
  }

  void read_string(char quote) {
    const int line = line_;
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        read_escape(value);
      } else {
        value += text_[at_];
      }
    }
    if (at_ >= text_.size()) fail("a string does not end");
    ++at_;
    lexemes_.push_back({Kind::string, std::move(value), line});
  }

  char32_t read_hex(size_t digits) {
    char32_t value = 0;
    for (size_t i = 0; i < digits; ++i) {
      const char c = at_ + 1 < text_.size() ? text_[++at_] : ' ';
      if (!std::isxdigit(static_cast<unsigned char>(c))) fail("an escape in a string is too short");
      value = value * 16 + static_cast<char32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
  }

  void read_escape(std::string& value) {
    const char c = text_[at_];
    static constexpr std::string_view from = "ntrbfav0\\'\"", to{"\n\t\r\b\f\a\v\0\\'\"", 11};
    if (c == '\n') {
      ++line_;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      char32_t code = read_hex(c == 'x' ? 2 : c == 'u' ? 4 : 8);
      const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
      append_character(value, surrogate || code > 0x10FFFF ? 0xFFFD : code);
    } else if (const size_t place = from.find(c); place != std::string_view::npos) {
      value += to[place];
    } else {
      value += '\\';
      value += c;
    }
  }

  std::string text_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Lexeme> lexemes_;
};

}  // namespace

std::vector<Lexeme> lex(std::string_view source) { return Lexer(source).run(); }

}  // namespace taper::llm::chat
